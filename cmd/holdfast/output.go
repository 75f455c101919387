package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// jsonFlag is embedded in every command whose answer has a form for machines.
type jsonFlag struct {
	JSON bool `name:"json" help:"Answer in JSON."`
}

// writeJSON writes v as one line.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
