// Reads a stream of JSON objects on stdin and prints a line for each: the status that the
// kstatus library computes for it, a tab, and the library's message.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	objects := json.NewDecoder(in)
	for {
		var raw json.RawMessage
		if err := objects.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		// Not encoding/json: the library wants whole numbers as int64.
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw); err != nil {
			return err
		}
		result, err := status.Compute(&object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\t%q\n", result.Status, result.Message); err != nil {
			return err
		}
	}
}
