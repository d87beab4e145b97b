package space

import (
	"context"
	"strings"

	"github.com/repa-app/repa/space/search"
)

// Search finds lines of the space's text files by the words of query, the best first. Errors: invalid_input for a blank query,
// that of ctx, storage.
func (s *Space) Search(ctx context.Context, query string, limit int) (search.Result, error) {
	if strings.TrimSpace(query) == "" {
		return search.Result{}, fail("invalid_input", "the search has no words; say what to look for")
	}
	r, err := search.Files(ctx, s.root, query, limit)
	if err != nil && ctx.Err() == nil {
		return r, diskError("folder "+s.path, err)
	}
	return r, err
}
