package main

import (
	"bytes"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/repa-app/repa/cmd/repa/messages"
)

const (
	// maxStdin keeps a submission, in which JSON may double it, within a message of the protocol.
	maxStdin = 3 << 20
	// silence is how long a pipe may say nothing before the command goes on without it: a program that starts others often leaves
	// them a pipe that nobody will ever write to or close.
	silence = 3 * time.Second
)

// pipedText reads standard input when it is a pipe or a file.
func (t *terminal) pipedText() (string, error) {
	info, err := t.in.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice != 0 || info.IsDir() {
		return "", nil // nothing is attached
	}
	type read struct {
		data []byte
		err  error
	}
	first, all := make(chan read, 1), make(chan read, 1)
	go func() { // ends with the input, or with the process
		head := make([]byte, 4096)
		n, err := t.in.Read(head)
		first <- read{head[:n], err}
		if err != nil {
			return
		}
		rest, err := io.ReadAll(io.LimitReader(t.in, maxStdin+1))
		all <- read{rest, err}
	}()
	var data []byte
	select {
	case r := <-first:
		if r.err == io.EOF {
			return "", nil
		}
		if r.err != nil {
			return "", r.err
		}
		data = r.data
	case <-time.After(silence):
		t.say(messages.StdinSilent)
		return "", nil
	}
	r := <-all
	if r.err != nil {
		return "", r.err
	}
	data = append(data, r.data...)
	switch {
	case len(data) > maxStdin:
		return "", t.fail(exitUsage, messages.StdinTooLarge, maxStdin>>20)
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "", t.fail(exitUsage, messages.StdinNoText)
	}
	return string(data), nil
}
