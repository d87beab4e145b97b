package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/repa-app/repa/actors"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol/server"
)

// exitAlreadyServing tells the command that started this process that another backend was faster.
const exitAlreadyServing = 3

// closeDeadline bounds how long front ends may take to read their last messages at the end.
const closeDeadline = time.Second

type serveCommand struct {
	ConnectionFile   string `required:"" help:"${serve_file}" placeholder:"F"`
	Port             int    `help:"${serve_port}" placeholder:"N"`
	ExitWhenDetached bool   `help:"${serve_exit}"`
}

// Run serves until it is told to end.
func (c *serveCommand) Run(ctx context.Context, t *terminal) error {
	ctx, stop := signal.NotifyContext(ctx, stopSignals...)
	defer stop()
	f := findFolders(t.getenv)
	file, err := filepath.Abs(c.ConnectionFile)
	if err != nil {
		return err
	}
	lock, err := t.lockState(f, file)
	if err != nil {
		return err
	}
	defer lock.Close()
	log, err := backendLog(t.err, t.getenv("REPA_LOG_LEVEL"))
	if err != nil {
		return err
	}
	backend, err := actors.New(actors.Options{Log: log, Random: rand.Reader, ConnectionFile: file, PID: os.Getpid(), ExitWhenDetached: c.ExitWhenDetached, Config: f.config})
	if err != nil {
		return err
	}
	return errors.Join(c.serve(ctx, t, backend, log, file), backend.Close())
}

func (c *serveCommand) serve(ctx context.Context, t *terminal, backend *actors.Backend, log *slog.Logger, file string) error {
	token := newToken()
	s, err := server.Listen(server.Options{Port: c.Port, Token: token, Logger: log, Backend: backend, Version: version()})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	shutdown := func() error {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
		defer cancel()
		if err := s.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return <-served
	}
	if err := t.writeConnection(file, connectionInfo{URL: s.URL(), Token: token, PID: os.Getpid(), Version: version()}); err != nil {
		return errors.Join(err, shutdown())
	}
	log.Info("serving", "url", s.URL(), "version", version())
	err = backend.Run(ctx)
	// Gone from the file before the last front end hears of the end: whoever comes now starts a new backend.
	removeConnection(file, token)
	err = errors.Join(err, shutdown())
	log.Info("ended")
	return err
}

// lockState makes this the only backend of the state folder.
func (t *terminal) lockState(f folders, connectionFile string) (io.Closer, error) {
	state, err := t.privateFolder(f.state)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	lock, err := state.Lock("backend.lock")
	if errors.Is(err, vfs.ErrLocked) {
		return nil, t.fail(exitAlreadyServing, messages.AlreadyServing, readHolder(state))
	}
	if err != nil {
		return nil, err
	}
	holder, err := json.Marshal(map[string]any{"pid": os.Getpid(), "connectionFile": connectionFile})
	if err == nil {
		err = vfs.PublishFile(state, "backend.json", holder, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// readHolder returns the process that backend.json names, 0 when it names none.
func readHolder(state vfs.FS) int {
	var holder struct{ PID int }
	data, err := vfs.ReadFile(state, "backend.json", maxConnectionFile)
	if err != nil || json.Unmarshal(data, &holder) != nil {
		return 0
	}
	return holder.PID
}

func newToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (t *terminal) writeConnection(file string, info connectionInfo) error {
	folder, err := t.privateFolder(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer folder.Close()
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return vfs.PublishFile(folder, filepath.Base(file), append(data, '\n'), 0o600)
}

// removeConnection removes the connection file if it still is this backend's.
func removeConnection(file, token string) {
	if info, ok := readConnection(file); !ok || info.Token != token {
		return
	}
	folder, err := vfs.OS(filepath.Dir(file))
	if err != nil {
		return
	}
	defer folder.Close()
	_ = folder.Remove(filepath.Base(file)) // a left-over file names a dead process and is replaced
}

// backendLog writes JSON lines of the level that REPA_LOG_LEVEL names.
func backendLog(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	switch strings.ToLower(level) {
	case "":
		l = slog.LevelInfo
	case "off":
		return slog.New(slog.DiscardHandler), nil
	default:
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("REPA_LOG_LEVEL is %q; choose debug, info, warn, error or off", level)
		}
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
}
