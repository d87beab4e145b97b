package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/space"
)

type doctorCommand struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Online bool   `help:"${doctor_online}"`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// finding is what one check found: ok, a note, or something wrong.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, note, wrong
	Text   string `json:"text"`
}

const (
	findingOK    = "ok"
	findingNote  = "note"
	findingWrong = "wrong"
)

const (
	// diskLow is less than a day of work with materials needs.
	diskLow = 200 << 20
	// watchLow is fewer folders than a grown space has.
	watchLow = 8192
	// clockSlack is what two machines that share files may differ by.
	clockSlack = 2 * time.Minute
	// onlineDeadline bounds the check of one connection.
	onlineDeadline = 15 * time.Second
	// keychainDeadline bounds the question to the keychain, which may wait for a service that is not there.
	keychainDeadline = 3 * time.Second
	maxSettings      = 4 << 20
)

// doctor gathers findings. It starts no backend and changes nothing.
type doctor struct {
	t        *terminal
	folders  folders
	findings []finding
}

// Run checks and ends with 1 when something is wrong.
func (c *doctorCommand) Run(ctx context.Context, t *terminal) error {
	d := &doctor{t: t, folders: findFolders(t.getenv)}
	dir, err := filepath.Abs(c.Space)
	if err != nil {
		return err
	}
	d.space(ctx, dir)
	d.settings()
	d.backend()
	d.watching()
	d.keychain()
	d.disk(dir)
	if c.Online {
		d.connections(ctx)
	}
	if c.Output == outputJSON {
		printJSON(t.out, map[string]any{"findings": d.findings})
	} else {
		d.print()
	}
	for _, f := range d.findings {
		if f.Status == findingWrong {
			return &exit{code: exitFailed}
		}
	}
	return nil
}

func (d *doctor) print() {
	for _, f := range d.findings {
		mark := messages.DoctorOK
		switch f.Status {
		case findingNote:
			mark = messages.DoctorWarning
		case findingWrong:
			mark = messages.DoctorFailed
		}
		fmt.Fprintf(d.t.out, "%s  %s: %s\n", d.t.text(mark), f.Check, f.Text)
	}
}

func (d *doctor) add(status string, check, text messages.Message, args ...any) {
	d.findings = append(d.findings, finding{d.t.text(check), status, d.t.text(text, args...)})
}

func (d *doctor) space(ctx context.Context, dir string) {
	folder, err := vfs.OS(dir)
	if err == nil {
		defer folder.Close()
		_, err = folder.ReadDir(".")
	}
	if err != nil {
		d.add(findingWrong, messages.DoctorFolder, messages.DoctorNotWritable, dir, err)
		return
	}
	if err := tryWrite(folder); err != nil {
		d.add(findingWrong, messages.DoctorFolder, messages.DoctorNotWritable, dir, err)
	} else {
		d.add(findingOK, messages.DoctorFolder, messages.DoctorReadable, dir)
	}
	d.clock(folder)
	info, err := folder.Lstat(space.MetaFolder)
	if errors.Is(err, fs.ErrNotExist) {
		d.add(findingNote, messages.DoctorFolder, messages.DoctorNotSpace, dir)
		return
	}
	if err == nil && !private(info) {
		d.add(findingWrong, messages.DoctorFolder, messages.DoctorMetaMode, filepath.Join(dir, space.MetaFolder), info.Mode().Perm())
	}
	meta, err := folder.Sub(space.MetaFolder)
	if err != nil {
		d.add(findingWrong, messages.DoctorFolder, messages.DoctorNotWritable, filepath.Join(dir, space.MetaFolder), err)
		return
	}
	defer meta.Close()
	d.lock(meta)
	d.journal(meta)
	d.sessions(ctx, meta)
	d.store(ctx, filepath.Join(dir, space.MetaFolder, space.StoreFolder), meta)
}

// tryWrite makes and removes a file: permissions alone do not tell (read-only disks, quotas).
func tryWrite(folder vfs.FS) error {
	const name = ".repa-doctor.tmp"
	f, err := folder.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("x"))
	return errors.Join(err, f.Close(), folder.Remove(name))
}

func (d *doctor) clock(folder vfs.FS) {
	entries, err := folder.ReadDir(".")
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		if ahead := time.Until(info.ModTime()); ahead > clockSlack {
			d.add(findingNote, messages.DoctorClock, messages.DoctorClockAhead, e.Name(), ahead.Round(time.Second))
			return
		}
	}
	d.add(findingOK, messages.DoctorClock, messages.DoctorClockOK)
}

func (d *doctor) lock(meta vfs.FS) {
	lock, err := meta.Lock("lock")
	if err == nil {
		_ = lock.Close() // it was free; closing frees it again
		d.add(findingOK, messages.DoctorLock, messages.DoctorLockFree)
		return
	}
	var owner space.Owner
	if data, err := vfs.ReadFile(meta, "owner.json", maxConnectionFile); err == nil {
		_ = json.Unmarshal(data, &owner) // a damaged file names process 0
	}
	d.add(findingOK, messages.DoctorLock, messages.DoctorLockHeld, owner.PID)
}

func (d *doctor) journal(meta vfs.FS) {
	journal, err := meta.Sub("journal")
	if err != nil {
		d.add(findingWrong, messages.DoctorJournal, messages.DoctorSessionBad, "journal", err)
		return
	}
	defer journal.Close()
	records, torn, err := recordlog.Check(journal)
	switch {
	case err != nil:
		d.add(findingWrong, messages.DoctorJournal, messages.DoctorSessionBad, "journal", err)
	case torn > 0:
		d.add(findingNote, messages.DoctorJournal, messages.DoctorJournalTorn, records, torn)
	default:
		d.add(findingOK, messages.DoctorJournal, messages.DoctorJournalOK, records)
	}
}

func (d *doctor) sessions(ctx context.Context, meta vfs.FS) {
	folder, err := meta.Sub("sessions")
	if err != nil {
		d.add(findingWrong, messages.DoctorSessions, messages.DoctorSessionBad, "sessions", err)
		return
	}
	defer folder.Close()
	good := 0
	err = session.List(ctx, folder, func(info session.Info, err error) bool {
		switch {
		case err != nil:
			d.add(findingWrong, messages.DoctorSessions, messages.DoctorSessionBad, info.File, err)
		case info.Damage > 0:
			d.add(findingNote, messages.DoctorSessions, messages.DoctorSessionHurt, info.File, info.Damage)
		default:
			good++
		}
		return true
	})
	if err != nil {
		d.add(findingWrong, messages.DoctorSessions, messages.DoctorSessionBad, "sessions", err)
		return
	}
	d.add(findingOK, messages.DoctorSessions, messages.DoctorSessionsOK, good)
}

// store tells what is noticed when the space's store is opened; reading all of it is the business of `repa cas verify`.
func (d *doctor) store(ctx context.Context, name string, meta vfs.FS) {
	folder, err := meta.Sub(space.StoreFolder)
	if errors.Is(err, fs.ErrNotExist) {
		d.add(findingNote, messages.DoctorStore, messages.DoctorStoreNone)
		return
	}
	var s *cas.Store
	if err == nil {
		defer folder.Close()
		s, err = cas.Open(ctx, name, cas.Options{FS: folder, ReadOnly: true})
	}
	if err != nil {
		d.add(findingWrong, messages.DoctorStore, messages.DoctorSessionBad, name, err)
		return
	}
	defer s.Close()
	st := s.Stats()
	noticed, cancel := context.WithCancel(ctx)
	cancel()
	v, _ := s.Verify(noticed, nil) // ended before it reads anything: it then tells what opening found
	switch {
	case st.InDoubt != "":
		d.add(findingWrong, messages.DoctorStore, messages.StoreInDoubt, st.InDoubt)
	case !v.Sound():
		d.add(findingWrong, messages.DoctorStore, messages.DoctorStoreHurt, len(v.Damaged)+len(v.Gaps)+len(v.Files))
	default:
		d.add(findingOK, messages.DoctorStore, messages.DoctorStoreOK, st.Objects, size(st.Bytes), st.Segments)
	}
}

func (d *doctor) settings() {
	file := filepath.Join(d.folders.config, "settings.json")
	config, err := vfs.OS(d.folders.config)
	if err == nil {
		defer config.Close()
		var data []byte
		if data, err = vfs.ReadFile(config, "settings.json", maxSettings); err == nil {
			var any map[string]json.RawMessage
			if err = json.Unmarshal(data, &any); err == nil {
				d.add(findingOK, messages.DoctorSettings, messages.DoctorReadable, file)
				return
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		d.add(findingOK, messages.DoctorSettings, messages.DoctorNoSettings)
		return
	}
	d.add(findingWrong, messages.DoctorSettings, messages.DoctorSettingsBad, file, err)
}

func (d *doctor) backend() {
	for _, dir := range []string{d.folders.state, d.folders.run} {
		if info, err := os.Lstat(dir); err == nil && (!private(info) || !ownedByUser(info)) {
			d.add(findingWrong, messages.DoctorRuntime, messages.BadFolder, dir)
		}
	}
	info, ok := readConnection(d.folders.connectionFile())
	switch {
	case ok && alive(info.PID) && stateLocked(d.folders):
		d.add(findingOK, messages.DoctorRuntime, messages.DoctorRunning, info.PID)
	case ok:
		d.add(findingNote, messages.DoctorRuntime, messages.DoctorStale, info.PID)
	default:
		d.add(findingOK, messages.DoctorRuntime, messages.DoctorNotRunning)
	}
}

func (d *doctor) watching() {
	instances, err := limitFile("max_user_instances")
	folders, err2 := limitFile("max_user_watches")
	switch {
	case err != nil || err2 != nil:
		d.add(findingOK, messages.DoctorWatch, messages.DoctorWatchOther)
	case folders < watchLow:
		d.add(findingNote, messages.DoctorWatch, messages.DoctorWatchLow, folders)
	default:
		d.add(findingOK, messages.DoctorWatch, messages.DoctorWatchOK, instances, folders)
	}
}

func limitFile(name string) (int, error) {
	proc, err := vfs.OS("/proc/sys/fs/inotify")
	if err != nil {
		return 0, err
	}
	defer proc.Close()
	data, err := vfs.ReadFile(proc, name, 64)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

// keychain asks for a key that is not there: "not found" is the answer of a working one.
func (d *doctor) keychain() {
	answer := make(chan error, 1)
	go func() { // ends with the answer, or with the process
		_, err := keyring.Get("repa", "doctor")
		answer <- err
	}()
	var err error
	select {
	case err = <-answer:
	case <-time.After(keychainDeadline):
		err = context.DeadlineExceeded
	}
	if err == nil || errors.Is(err, keyring.ErrNotFound) {
		d.add(findingOK, messages.DoctorKeychain, messages.DoctorKeysOK)
		return
	}
	d.add(findingNote, messages.DoctorKeychain, messages.DoctorKeysNone, err)
}

func (d *doctor) disk(dir string) {
	free, ok := freeDisk(dir)
	switch {
	case !ok:
		d.add(findingNote, messages.DoctorDisk, messages.DoctorDiskUnknown)
	case free < diskLow:
		d.add(findingWrong, messages.DoctorDisk, messages.DoctorDiskLow, free>>20)
	default:
		d.add(findingOK, messages.DoctorDisk, messages.DoctorDiskOK, free>>20)
	}
}

// connections asks every provider that has a key here, and the local one, for its models.
func (d *doctor) connections(ctx context.Context) {
	for _, e := range environments {
		name := messages.Message{En: d.t.lang.Text(messages.DoctorConnection, e.provider), Zh: d.t.lang.Text(messages.DoctorConnection, e.provider)}
		key := ""
		if e.key != "" {
			if key = d.t.getenv(e.key); key == "" {
				d.add(findingNote, name, messages.DoctorNoKeys, e.key)
				continue
			}
		}
		lent, err := connection.Lend("doctor", e.provider, e.baseURL(d.t.getenv), key)
		var address string
		if err == nil {
			checking, cancel := context.WithTimeout(ctx, onlineDeadline)
			address, err = lent.Check(checking, nil)
			cancel()
		}
		switch {
		case err == nil:
			d.add(findingOK, name, messages.DoctorReachable, address)
		case e.provider == connection.Ollama && d.t.getenv(e.endpoint) == "":
			d.add(findingNote, name, messages.DoctorSessionBad, e.provider, err) // nobody said that there is one
		default:
			d.add(findingWrong, name, messages.DoctorSessionBad, e.provider, err)
		}
	}
}
