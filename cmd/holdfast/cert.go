package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast.internal/cluster/peer"
)

type certCommand struct {
	CA   certCA   `cmd:"" name:"ca" help:"Make the authority that signs the certificates of all nodes; its key is needed by cert node only."`
	Node certNode `cmd:"" help:"Make certificate and key of a node, signed by the authority."`
}

// certDir is embedded in both commands.
type certDir struct {
	jsonFlag
	Dir string `default:"." placeholder:"DIR" help:"Folder of the files (${default}); the authority is ca.pem and ca-key.pem in it."`
}

// certFiles is what was written.
type certFiles struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

type certCA struct {
	certDir
}

func (c *certCA) Run(out *console) error {
	authority, err := peer.NewAuthority(time.Now())
	if err != nil {
		return fmt.Errorf("make authority: %w", err)
	}
	return c.write(out, c.files("ca"), authority)
}

type certNode struct {
	certDir
	Name string   `arg:"" help:"Name of the node, as in serve --node."`
	Host []string `placeholder:"HOST" help:"A further name or address to put into the certificate; nodes look at NAME only."`
}

func (c *certNode) Validate() error {
	if !nodeForm.MatchString(c.Name) {
		return fmt.Errorf("%q: want 1 to 64 letters, digits, dots, hyphens or underscores", c.Name)
	}
	return nil
}

func (c *certNode) Run(out *console) error {
	ca := c.files("ca")
	var authority peer.KeyPair
	var err error
	if authority.Certificate, err = os.ReadFile(ca.Certificate); err != nil {
		return fmt.Errorf("read authority (made by holdfast cert ca): %w", err)
	}
	if authority.Key, err = os.ReadFile(ca.Key); err != nil {
		return fmt.Errorf("read authority: %w", err)
	}
	pair, err := peer.NewCertificate(authority, c.Name, c.Host, time.Now())
	if err != nil {
		return fmt.Errorf("make certificate: %w", err)
	}
	return c.write(out, c.files(c.Name), pair)
}

func (c *certDir) files(name string) certFiles {
	return certFiles{filepath.Join(c.Dir, name+".pem"), filepath.Join(c.Dir, name+"-key.pem")}
}

// write never replaces a file: an authority that is gone takes its cluster's
// certificates with it.
func (c *certDir) write(out *console, files certFiles, pair peer.KeyPair) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := writeNew(files.Key, pair.Key); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	if err := writeNew(files.Certificate, pair.Certificate); err != nil {
		return fmt.Errorf("write certificate: %w", errors.Join(err, os.Remove(files.Key)))
	}
	if c.JSON {
		return writeJSON(out.stdout, files)
	}
	_, err := fmt.Fprintf(out.stdout, "certificate %s\nkey         %s\n", files.Certificate, files.Key)
	return err
}

// writeNew writes a file that must not be there, for its owner's eyes only.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
