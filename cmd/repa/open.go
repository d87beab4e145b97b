package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/example"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/space"
)

// exampleFolder unpacks the sample space on first use.
func (t *terminal) exampleFolder() (string, error) {
	f := findFolders(t.getenv)
	state, err := t.privateFolder(f.state)
	if err != nil {
		return "", err
	}
	defer state.Close()
	if err := example.Unpack(state); err != nil {
		return "", fmt.Errorf("unpack the sample space to %s: %w", f.example(), err)
	}
	return f.example(), nil
}

// checkSpace makes an existing, readable folder of a path that a person gave, and asks before .repa is made in it.
func (t *terminal) checkSpace(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &coded{protocol.CodeNotFound, t.text(messages.NoSuchSpace, abs)}
	case errors.Is(err, fs.ErrPermission):
		return "", &coded{"permission_denied", t.text(messages.SpaceDenied, abs)}
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", &coded{"not_directory", t.text(messages.SpaceIsFile, abs)}
	}
	path, err := space.Resolve(abs)
	if err != nil {
		return "", err
	}
	folder, err := vfs.OS(path)
	if err == nil {
		_, err = folder.ReadDir(".")
		defer folder.Close()
	}
	if err != nil {
		return "", &coded{"permission_denied", t.text(messages.SpaceDenied, path)}
	}
	meta := filepath.Join(path, space.MetaFolder)
	if _, err := os.Lstat(meta); err == nil {
		return path, nil
	}
	if t.quiet {
		return path, nil
	}
	t.say(messages.FirstContact, meta)
	if !t.yes && term.IsTerminal(int(t.in.Fd())) && !t.confirm() {
		return "", t.fail(exitFailed, messages.NotGoneOn)
	}
	return path, nil
}

// confirm asks on the terminal; Enter means yes.
func (t *terminal) confirm() bool {
	fmt.Fprint(t.err, t.text(messages.AskGoOn))
	answer, err := bufio.NewReader(io.LimitReader(t.in, 1024)).ReadString('\n')
	if err != nil && answer == "" {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "", "y", "yes", "是", "好":
		return true
	}
	return false
}

// coded is a failure of the command line itself with a code of the protocol, for those who read JSON.
type coded struct {
	code    protocol.Code
	message string
}

func (e *coded) Error() string { return e.message }
func (e *coded) Code() string  { return string(e.code) }

// enter attaches to the backend and opens a space there. The caller closes the client.
func (t *terminal) enter(ctx context.Context, path string) (*client.Client, protocol.Space, error) {
	c, err := t.attach(ctx)
	if err != nil {
		return nil, protocol.Space{}, err
	}
	s, err := client.Call(ctx, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: path})
	if err != nil {
		leave(c)
		return nil, protocol.Space{}, err
	}
	return c, s, nil
}

// enterDir checks a folder that a person named and opens it.
func (t *terminal) enterDir(ctx context.Context, dir string) (*client.Client, protocol.Space, error) {
	path, err := t.checkSpace(dir)
	if err != nil {
		return nil, protocol.Space{}, err
	}
	return t.enter(ctx, path)
}

// leave detaches. That the backend does not confirm it changes nothing for the command, whose work is done.
func leave(c *client.Client) { _ = c.Close(context.Background()) }

// recentSession returns the session with the newest activity.
func recentSession(ctx context.Context, c *client.Client, spaceID protocol.ID) (protocol.ID, bool, error) {
	all, err := client.Call(ctx, c, protocol.SessionList, protocol.SpaceParams{SpaceID: spaceID})
	if err != nil || len(all) == 0 {
		return "", false, err
	}
	return all[0].SessionID, true, nil
}

func newSession(ctx context.Context, c *client.Client, spaceID protocol.ID) (protocol.ID, error) {
	v, err := client.Call(ctx, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: spaceID})
	return v.SessionID, err
}

// findSession checks that a session exists.
func (t *terminal) findSession(ctx context.Context, c *client.Client, s protocol.Space, id protocol.ID) error {
	if id.Valid() {
		_, err := client.Call(ctx, c, protocol.SessionGet, protocol.SessionKey{SpaceID: s.ID, SessionID: id})
		if !errors.Is(err, &protocol.Error{Reason: protocol.CodeNotFound}) {
			return err
		}
	}
	return &coded{protocol.CodeNotFound, t.text(messages.UnknownOption, id, s.Path)}
}
