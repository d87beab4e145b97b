package testkit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/repa-app/repa/"

// arrows says, for each package (longest prefix first), which other packages of the module it may import in product code, and why.
var arrows = []struct {
	from string
	to   []string
	why  string
}{
	{"cmd/", []string{"actors", "agent/", "cas/", "protocol", "protocol/", "space", "cmd/"}, "the command line wires everything and reads files for doctor and session context"},
	{"actors/engine", nil, "the typed layer knows only the actor library"},
	{"actors/feed", []string{"protocol"}, "published state is wire state"},
	{"actors/ledger", []string{"protocol", "cas/recordlog"}, "requests and runs are kept as the protocol shows them"},
	{"actors/wire", []string{"protocol", "agent/", "space/"}, "conversion between domain and wire"},
	{"actors", []string{"actors/", "agent", "agent/", "space", "space/", "protocol", "protocol/", "cas/"}, "the coordinator puts agent, space and protocol together"},
	{"agent", []string{"agent/", "cas", "cas/"}, "the agent knows neither spaces nor actors nor the protocol"},
	{"space", []string{"space/", "cas", "cas/"}, "a space knows neither agents nor actors nor the protocol"},
	{"protocol", []string{"protocol", "protocol/"}, "the public contract imports nothing of ours"},
	{"cas", []string{"cas/vfs", "cas/internal/"}, "the store stands below everything"},
	{"testkit/crashfs", []string{"cas/vfs"}, "a disk is a disk"},
	{"testkit/clock", nil, "a clock is a clock"},
	{"testkit/backend", []string{"protocol", "protocol/"}, "it runs the real binary from outside"},
	{"testkit", nil, "scripted peers speak the wire formats by themselves"},
}

// owners says which packages alone may import a library.
var owners = []struct{ library, owner, why string }{
	{"github.com/asynkron/protoactor-go", "actors/engine", "the engine could be replaced in one package"},
	{"github.com/coder/websocket", "protocol/", "one place for framing and its limits"},
	{"github.com/zeebo/blake3", "cas", "one digest function"},
	{"lukechampine.com/blake3", "cas/internal/tree", "the arithmetic of subtrees is in one place"},
	{"github.com/klauspost/compress/zstd", "cas/", "compression is the store's business"},
	{"github.com/fsnotify/fsnotify", "space/", "watching is the space's business"},
	{"github.com/gofrs/flock", "cas/vfs", "one disk interface"},
	{"github.com/openai/openai-go", "agent/llm/", "providers are behind one interface"},
	{"github.com/anthropics/anthropic-sdk-go", "agent/llm/", "providers are behind one interface"},
	{"github.com/orcaman/concurrent-map", "actors/engine", "its shard count is a global that the engine sets"},
	{"google.golang.org/genai", "agent/llm/", "providers are behind one interface"},
}

// openers are the functions of package os by which files are opened or written; only cas/vfs does that.
var openers = map[string]bool{"Open": true, "OpenFile": true, "OpenRoot": true, "OpenInRoot": true, "Create": true, "CreateTemp": true,
	"ReadFile": true, "WriteFile": true, "Rename": true, "Remove": true, "RemoveAll": true, "Link": true, "Symlink": true, "Truncate": true}

type source struct {
	pkg, file string
	tree      *ast.File
}

// sources parses the product's Go files.
func sources(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var out []source
	set := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		tree, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		out = append(out, source{filepath.ToSlash(filepath.Dir(rel)), filepath.ToSlash(rel), tree})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d files were found", len(out))
	}
	return out
}

func imports(s source) []string {
	var out []string
	for _, i := range s.tree.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, path)
		}
	}
	return out
}

// within reports whether pkg is the pattern's package or, when the pattern ends with a slash, below it.
func within(pkg, pattern string) bool {
	if base, ok := strings.CutSuffix(pattern, "/"); ok {
		return pkg == base || strings.HasPrefix(pkg, pattern)
	}
	return pkg == pattern
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		var allowed []string
		why, found := "", false
		for _, a := range arrows {
			if s.pkg == strings.TrimSuffix(a.from, "/") || strings.HasPrefix(s.pkg, strings.TrimSuffix(a.from, "/")+"/") {
				allowed, why, found = a.to, a.why, true
				break
			}
		}
		if !found {
			t.Errorf("%s: package %s has no row in the table of arrows", s.file, s.pkg)
			continue
		}
	next:
		for _, path := range imports(s) {
			pkg, ours := strings.CutPrefix(path, module)
			if !ours || within(pkg, s.pkg+"/") || within(s.pkg, pkg+"/") {
				continue // a package and its own folders
			}
			for _, a := range allowed {
				if within(pkg, a) {
					continue next
				}
			}
			t.Errorf("%s imports %s; %s", s.file, pkg, why)
		}
	}
}

func TestLibrariesHaveOneOwner(t *testing.T) {
	for _, s := range sources(t) {
		for _, path := range imports(s) {
			for _, o := range owners {
				if (path == o.library || strings.HasPrefix(path, o.library+"/")) && !within(s.pkg, o.owner) && !strings.HasPrefix(s.pkg, "testkit/") {
					t.Errorf("%s imports %s, which only %s may: %s", s.file, path, o.owner, o.why)
				}
			}
		}
	}
}

func TestOnlyVfsOpensFiles(t *testing.T) {
	for _, s := range sources(t) {
		if s.pkg == "cas/vfs" || strings.HasPrefix(s.pkg, "testkit") || s.pkg == "protocol/internal/fake" {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "os" && openers[selector.Sel.Name] {
				t.Errorf("%s calls os.%s; files are opened through cas/vfs", s.file, selector.Sel.Name)
			}
			return true
		})
	}
}

func TestTopLevelIsTheDesignCard(t *testing.T) {
	allowed := map[string]bool{"cmd": true, "actors": true, "cas": true, "space": true, "agent": true, "protocol": true, "testkit": true,
		"go.mod": true, "go.sum": true, "README.md": true, "LICENSE": true}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !allowed[e.Name()] && !strings.HasPrefix(e.Name(), ".") {
			t.Errorf("the top level holds %s, which the design does not name", e.Name())
		}
	}
}

func TestEveryPackageHasADocComment(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[s.pkg] = documented[s.pkg] || s.tree.Doc != nil
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}
