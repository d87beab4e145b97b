package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/repa-app/repa/protocol"
)

// checkpoint is the section of a journal's checkpoint that belongs to the ledger: a JSON object, read leniently.
type checkpoint struct {
	Version  int                               `json:"version"`
	Requests map[protocol.ID]*protocol.Request `json:"requests"`
	Runs     map[protocol.ID]*protocol.Run     `json:"runs"`
	Texts    map[protocol.ID][]Text            `json:"texts"`
	Paused   map[protocol.ID]bool              `json:"paused"`
	Next     protocol.Int                      `json:"next"`
}

const checkpointVersion = 1

// Checkpoint is the state as a section of a checkpoint. Errors: none for a state that is not Newer.
func (s *State) Checkpoint() ([]byte, error) {
	if s.Newer {
		return nil, fmt.Errorf("a newer version's records cannot be kept in a checkpoint")
	}
	return json.Marshal(checkpoint{checkpointVersion, s.Requests, s.Runs, s.Texts, s.Paused, s.Next})
}

// LoadCheckpoint makes a state from what Checkpoint gave. Errors: a section that is damaged or of another version.
func LoadCheckpoint(data []byte) (*State, error) {
	c := checkpoint{Requests: map[protocol.ID]*protocol.Request{}, Runs: map[protocol.ID]*protocol.Run{}, Texts: map[protocol.ID][]Text{}, Paused: map[protocol.ID]bool{}}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("read the ledger's checkpoint: %w", err)
	}
	if c.Version != checkpointVersion || c.Next < 1 {
		return nil, fmt.Errorf("read the ledger's checkpoint: version %d", c.Version)
	}
	for id, r := range c.Requests {
		if r == nil || r.RequestID != id {
			return nil, fmt.Errorf("read the ledger's checkpoint: request %s", id)
		}
	}
	for id, r := range c.Runs {
		if r == nil || r.ID != id {
			return nil, fmt.Errorf("read the ledger's checkpoint: run %s", id)
		}
	}
	return &State{Requests: c.Requests, Runs: c.Runs, Texts: c.Texts, Paused: c.Paused, Next: c.Next}, nil
}
