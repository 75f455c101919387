package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The ioctls of a mounted file system.
const (
	ioctlFreeze   = 0xc0045877 // FIFREEZE
	ioctlThaw     = 0xc0045878 // FITHAW
	ioctlShutdown = 0x8004587d // EXT4_IOC_SHUTDOWN
	shutdownNow   = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH: what is not synced is lost
)

// Disk is a small ext4 file system of its own, in a file that is mounted. All
// that was synced is in the file, so that a power failure can be played.
type Disk struct {
	image  string
	mount  string
	frozen *os.File
}

// NewDisk makes a file system of the given size (at least 8 MiB) in dir and
// mounts it. It returns an error that wraps ErrUnavailable where that cannot be
// done: it needs Linux, root, loop devices and mkfs.ext4. The caller must Close it.
func NewDisk(dir string, size int64) (*Disk, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("mount disk: not root: %w", ErrUnavailable)
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return nil, fmt.Errorf("mount disk: %w: %w", ErrUnavailable, err)
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		return nil, fmt.Errorf("mount disk: %w: %w", ErrUnavailable, err)
	}
	d := &Disk{image: filepath.Join(dir, "disk.img"), mount: filepath.Join(dir, "disk")}
	if err := os.Mkdir(d.mount, 0o700); err != nil {
		return nil, fmt.Errorf("make disk: %w", err)
	}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		return nil, fmt.Errorf("make disk: %w", err)
	}
	if err := os.Truncate(d.image, size); err != nil {
		return nil, fmt.Errorf("make disk: %w", err)
	}
	if err := command(context.Background(), "mkfs.ext4", "-q", "-F", "-m", "0", d.image); err != nil {
		return nil, fmt.Errorf("make disk: %w", err)
	}
	if err := d.attach(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return d, nil
}

// attach mounts the image by a loop device that nobody has used for it. A mount
// namespace that somebody made meanwhile keeps the file system from before, with its
// device, and mount would take that again.
func (d *Disk) attach() error {
	output, err := exec.Command("losetup", "--find", "--show", d.image).Output()
	if err != nil {
		return fmt.Errorf("losetup %s: %w", d.image, err)
	}
	device := strings.TrimSpace(string(output))
	err = command(context.Background(), "mount", "-o", "noatime", device, d.mount)
	return errors.Join(err, command(context.Background(), "losetup", "--detach", device)) // when it is unmounted
}

// Path returns where the file system is mounted.
func (d *Disk) Path() string { return d.mount }

// Fill takes all space but the given number of bytes away, in a file of its own,
// so that writes meet ENOSPC. Free gives it back.
func (d *Disk) Fill(left int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(d.mount, &s); err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	f, err := os.Create(d.ballast())
	if err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	size := max(int64(s.Bavail)*s.Bsize-left, 0)
	if size > 0 {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("fill disk with %d bytes: %w", size, err)
	}
	return nil
}

// Free takes the ballast of Fill away.
func (d *Disk) Free() error {
	if err := os.Remove(d.ballast()); err != nil {
		return fmt.Errorf("free disk: %w", err)
	}
	return nil
}

func (d *Disk) ballast() string { return filepath.Join(d.mount, "ballast") }

// Freeze makes every write and sync wait until Thaw: a disk that stalls.
func (d *Disk) Freeze() error {
	f, err := os.Open(d.mount)
	if err != nil {
		return fmt.Errorf("freeze disk: %w", err)
	}
	if err := unix.IoctlSetInt(int(f.Fd()), ioctlFreeze, 0); err != nil {
		return errors.Join(fmt.Errorf("freeze disk: %w", err), f.Close())
	}
	d.frozen = f
	return nil
}

// Thaw ends Freeze.
func (d *Disk) Thaw() error {
	if d.frozen == nil {
		return nil
	}
	err := errors.Join(unix.IoctlSetInt(int(d.frozen.Fd()), ioctlThaw, 0), d.frozen.Close())
	d.frozen = nil
	if err != nil {
		return fmt.Errorf("thaw disk: %w", err)
	}
	return nil
}

// Break makes every later read, write and sync fail with EIO, and loses what was
// not synced. Whoever still has files open meets the errors; Remount brings the
// disk back as after a power failure. A sync that is under way meanwhile may be
// told success for what is lost (the kernel did so in 7 of 150 tries), so a
// process whose power fails is paused first.
func (d *Disk) Break() error {
	f, err := os.Open(d.mount)
	if err != nil {
		return fmt.Errorf("break disk: %w", err)
	}
	err = unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, shutdownNow)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("break disk: %w", err)
	}
	return nil
}

// Remount takes the disk away and brings it back, which replays its journal. All
// processes that have files open on it must be gone.
func (d *Disk) Remount() error {
	if err := unix.Unmount(d.mount, 0); err != nil {
		return fmt.Errorf("remount disk: %w", err)
	}
	if err := d.attach(); err != nil {
		return fmt.Errorf("remount disk: %w", err)
	}
	return nil
}

// Close thaws and unmounts the disk. The image stays, for whoever wants to look.
func (d *Disk) Close() error {
	thawed := d.Thaw()
	if err := unix.Unmount(d.mount, 0); err != nil {
		return errors.Join(thawed, fmt.Errorf("close disk: %w", err))
	}
	return thawed
}
