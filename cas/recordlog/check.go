package recordlog

import (
	"fmt"

	"github.com/repa-app/repa/cas/vfs"
)

// Check reads a log without changing it, also while its owner has it open: how many records it has, and how many bytes behind
// them would be moved aside at the next open. Errors: *DamageError, ErrNewerFormat, errors of the disk.
func Check(fsys vfs.FS) (records int, torn int64, err error) {
	generations, err := segments(fsys)
	if err != nil {
		return 0, 0, fmt.Errorf("check log: %w", err)
	}
	for i, g := range generations {
		data, err := vfs.ReadFile(fsys, segmentName(g), -1)
		if err != nil {
			return records, 0, fmt.Errorf("check log: %w", err)
		}
		good, err := scan(data, g, i == len(generations)-1, headerSize, func(Record) error { records++; return nil })
		if err != nil {
			return records, 0, err
		}
		torn = int64(len(data)) - good
	}
	return records, torn, nil
}
