package watch

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options of New. The zero value is right for products.
type Options struct {
	Gather     time.Duration // how long the paths of a burst are gathered after the first; 0: 30 ms
	Interval   time.Duration // between scans where notices do not reach; 0: 3 s, and never less than twenty times what a scan takes
	Recheck    time.Duration // between scans where they do, because network folders and lost notices give none; 0: 10 minutes
	MaxFolders int           // of all spaces that are watched by notices; 0: 10,000
	Log        *slog.Logger
}

// maxFilesKqueue is how many files are watched by notices on systems that open each file for it.
const maxFilesKqueue = 1000

// maxDirty bounds the paths that wait for a look; beyond, the space is scanned.
const maxDirty = 10_000

// Watcher follows the trees of all open spaces. Its methods are safe for concurrent use.
type Watcher struct {
	opts Options
	fs   *fsnotify.Watcher // nil: the system gives no notices
	done chan struct{}

	mu      sync.Mutex
	spaces  map[*Space]bool
	watched map[string]place // by absolute path
}

// place is a watched folder.
type place struct {
	space *Space
	name  string
}

// New starts a watcher. Without notices of the system it scans.
func New(opts Options) *Watcher {
	if opts.Gather == 0 {
		opts.Gather = 30 * time.Millisecond
	}
	if opts.Interval == 0 {
		opts.Interval = 3 * time.Second
	}
	if opts.Recheck == 0 {
		opts.Recheck = 10 * time.Minute
	}
	if opts.MaxFolders == 0 {
		opts.MaxFolders = 10_000
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	w := &Watcher{opts: opts, done: make(chan struct{}), spaces: map[*Space]bool{}, watched: map[string]place{}}
	var err error
	if w.fs, err = fsnotify.NewBufferedWatcher(4096); err != nil {
		opts.Log.Warn("the system gives no notices of changed files; spaces are scanned instead", "error", err)
		close(w.done)
		return w
	}
	go w.listen()
	return w
}

// Close ends all spaces and waits for them.
func (w *Watcher) Close() error {
	w.mu.Lock()
	spaces := make([]*Space, 0, len(w.spaces))
	for s := range w.spaces {
		spaces = append(spaces, s)
	}
	w.mu.Unlock()
	for _, s := range spaces {
		s.Close()
	}
	if w.fs == nil {
		return nil
	}
	err := w.fs.Close()
	<-w.done
	return err
}

// Report is what is not as it was in a space.
type Report struct {
	Found
	First bool // the first scan of a tree of which nothing was known: Changed is all there is, and no changes
}

// Space is one watched space.
type Space struct {
	w      *Watcher
	path   string
	tree   *Tree
	report func(context.Context, Report)
	cancel context.CancelFunc
	ended  chan struct{}
	wake   chan struct{} // of one: something is dirty

	mu      sync.Mutex
	waiting []chan struct{} // closed after the next round
	dirty   map[string]bool
	rescan  bool
	notices bool // the system tells of changes
	why     string
}

// Follow watches a tree whose folder has an absolute path; report is called with each change, first with that of a scan. Errors: none; what the system
// cannot watch is scanned.
func (w *Watcher) Follow(dir string, tree *Tree, report func(context.Context, Report)) *Space {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Space{w: w, path: dir, tree: tree, report: report, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		dirty: map[string]bool{}, rescan: true}
	w.mu.Lock()
	w.spaces[s] = true
	w.mu.Unlock()
	s.poke()
	go s.follow(ctx)
	return s
}

// Close ends watching and waits until no report is under way.
func (s *Space) Close() {
	s.cancel()
	<-s.ended
}

// Mode says whether the system tells of changes, and if not, why the space is scanned.
func (s *Space) Mode() (notices bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notices, s.why
}

// Rescan asks for a scan.
func (s *Space) Rescan() {
	s.mu.Lock()
	s.rescan = true
	s.mu.Unlock()
	s.poke()
}

// Sync compares the whole space with the disk and returns when what was found is reported. Errors: that of ctx, ErrClosed.
func (s *Space) Sync(ctx context.Context) error {
	done := make(chan struct{})
	s.mu.Lock()
	s.rescan = true
	s.waiting = append(s.waiting, done)
	s.mu.Unlock()
	s.poke()
	select {
	case <-done:
		return nil
	case <-s.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrClosed: the space is no longer watched.
var ErrClosed = errors.New("the space is no longer watched")

func (s *Space) poke() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}

// touch notes that something happened at a path.
func (s *Space) touch(name string) {
	s.mu.Lock()
	if len(s.dirty) < maxDirty {
		s.dirty[name] = true
	} else {
		s.rescan = true
	}
	s.mu.Unlock()
	s.poke()
}

// listen takes the notices of the system.
func (w *Watcher) listen() {
	defer close(w.done)
	for {
		select {
		case event, ok := <-w.fs.Events:
			if !ok {
				return
			}
			w.notice(event)
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			w.opts.Log.Debug("notices of changed files were lost; spaces are scanned", "error", err)
			w.mu.Lock()
			for s := range w.spaces {
				s.Rescan()
			}
			w.mu.Unlock()
		}
	}
}

func (w *Watcher) notice(event fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.watched[event.Name]; ok && event.Op&(fsnotify.Remove|fsnotify.Rename) != 0 {
		delete(w.watched, event.Name)
		p.space.touch(p.name)
		return
	}
	if event.Op == fsnotify.Chmod {
		return
	}
	if p, ok := w.watched[filepath.Dir(event.Name)]; ok {
		p.space.touch(path.Join(p.name, filepath.Base(event.Name)))
	}
}

// follow looks when something happened, until the context ends.
func (s *Space) follow(ctx context.Context) {
	defer close(s.ended)
	defer s.w.forget(s)
	next := time.NewTimer(s.w.opts.Recheck)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			s.mu.Lock()
			s.rescan = true
			s.mu.Unlock()
		case <-s.wake:
		}
		took := s.round(ctx)
		next.Reset(s.pause(took))
		gather := time.NewTimer(s.w.opts.Gather)
		select {
		case <-ctx.Done():
			gather.Stop()
			return
		case <-gather.C:
		}
	}
}

// pause is when the next scan is due.
func (s *Space) pause(scan time.Duration) time.Duration {
	if notices, _ := s.Mode(); notices {
		return s.w.opts.Recheck
	}
	return max(s.w.opts.Interval, 20*scan)
}

// round looks at what is dirty, or at everything.
func (s *Space) round(ctx context.Context) (scan time.Duration) {
	s.mu.Lock()
	dirty, rescan, waiting := s.dirty, s.rescan, s.waiting
	s.dirty, s.rescan, s.waiting = map[string]bool{}, false, nil
	s.mu.Unlock()
	defer func() {
		for _, done := range waiting {
			close(done)
		}
	}()
	var r Report
	if rescan {
		start := time.Now()
		r.First = !s.tree.Known()
		s.tryNotices()
		var err error
		if r.Found, err = s.tree.Scan(ctx, s.watch); err != nil {
			if ctx.Err() == nil {
				s.w.opts.Log.Warn("a space cannot be scanned", "space", s.path, "error", err)
			}
			return time.Since(start)
		}
		scan = time.Since(start)
	} else {
		for name := range dirty {
			found, err := s.tree.Look(ctx, name, s.watch)
			if err != nil {
				s.w.opts.Log.Debug("a changed file cannot be looked at", "space", s.path, "file", name, "error", err)
				continue
			}
			r.add(found)
		}
		r.sort()
	}
	if ctx.Err() == nil && (len(r.Changed)+len(r.Fresh) > 0 || r.First) {
		s.report(ctx, r)
	}
	return scan
}

// tryNotices asks for notices, unless it is known that they do not reach.
func (s *Space) tryNotices() {
	kqueue := runtime.GOOS != "linux" && runtime.GOOS != "windows"
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why != "":
	case s.w.fs == nil:
		s.why = "the system gives no notices"
	case kqueue && s.tree.Files() > maxFilesKqueue:
		s.why = "there are more files than this system gives notices of"
	default:
		s.notices = true
	}
}

// watch asks for notices of a folder.
func (s *Space) watch(name string) {
	if notices, _ := s.Mode(); !notices {
		return
	}
	full := filepath.Join(s.path, filepath.FromSlash(name))
	s.w.mu.Lock()
	_, known := s.w.watched[full]
	tooMany := len(s.w.watched) >= s.w.opts.MaxFolders
	if !known && !tooMany {
		s.w.watched[full] = place{s, name}
	}
	s.w.mu.Unlock()
	if known {
		return
	}
	if tooMany {
		s.scanInstead("there are too many folders")
		return
	}
	if err := s.w.fs.Add(full); err != nil {
		s.w.mu.Lock()
		delete(s.w.watched, full)
		s.w.mu.Unlock()
		if !gone(err) {
			s.scanInstead(err.Error())
		}
	}
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// scanInstead gives the notices of a space up.
func (s *Space) scanInstead(why string) {
	s.mu.Lock()
	s.notices, s.why = false, why
	s.mu.Unlock()
	s.w.opts.Log.Info("a space is scanned for changes, because notices do not reach it", "space", s.path, "reason", why)
	s.w.unwatch(s)
}

func (w *Watcher) unwatch(s *Space) {
	w.mu.Lock()
	var mine []string
	for full, p := range w.watched {
		if p.space == s {
			mine = append(mine, full)
			delete(w.watched, full)
		}
	}
	w.mu.Unlock()
	for _, full := range mine {
		_ = w.fs.Remove(full) // gone, or never watched
	}
}

func (w *Watcher) forget(s *Space) {
	if w.fs != nil {
		w.unwatch(s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.spaces, s)
}
