package frames

import (
	"encoding/json"
	"fmt"
	"os"
)

// Turn is one scripted answer of the model.
type Turn struct {
	Chunks    []string `json:"chunks"`
	Error     *Failure `json:"error"`
	Retryable *bool    `json:"retryable"`
	Hold      string   `json:"hold"` // the turn blocks before its end until this name is released
	Tool      string   `json:"tool"` // "wait": it also calls a harmless tool
	Ask       *Ask     `json:"ask"`
}

// Failure is how a failing turn fails; its text as given in the file.
type Failure struct{ Text string }

// UnmarshalJSON takes any JSON: a text or an object.
func (f *Failure) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &f.Text) != nil {
		f.Text = string(raw)
	}
	return nil
}

// Ask makes the turn call a test tool that opens this question.
type Ask struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
}

type step struct {
	Dir      string          `json:"dir"`
	Conn     string          `json:"conn"`
	Frame    any             `json:"frame"`
	Raw      *string         `json:"raw"`
	HTTP     *httpStep       `json:"http"`
	Close    *closeStep      `json:"close"`
	Do       json.RawMessage `json:"do"`
	Invalid  bool            `json:"invalid"`
	Strict   bool            `json:"strict"`
	AnyOrder bool            `json:"anyOrder"`
	Exact    bool            `json:"exact"`
	Never    []string        `json:"never"`
	Of       string          `json:"of"`
	Note     string          `json:"note"`
}

type closeStep struct {
	Code int `json:"code"`
}

type httpStep struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
	Status  int               `json:"status"`
	JSON    any               `json:"json"`
	Schema  string            `json:"schema"`
}

type action struct {
	Connect    string  `json:"connect"`
	As         string  `json:"as"`
	Initialize string  `json:"initialize"`
	Drop       string  `json:"drop"`
	Use        string  `json:"use"`
	Server     *Server `json:"server"`
	Wait       int     `json:"wait"`
	File       *File   `json:"file"`
	Model      []Turn  `json:"model"`
	Release    string  `json:"release"`
}

// Server is what a file asks of the start of the backend.
type Server struct {
	EventBufferSize int `json:"eventBufferSize"` // 0: as usual
}

// File is written from outside.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

func load(path string) ([]step, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var steps []step
	if err := json.Unmarshal(text, &steps); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for i := range steps {
		if steps[i].Conn == "" {
			steps[i].Conn = "a"
		}
	}
	return steps, nil
}
