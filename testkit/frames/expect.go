package frames

import (
	"errors"
	"fmt"
	"slices"
)

// expectAnswer finds the answer (or batch of answers) that the step describes.
func (p *player) expectAnswer(in *inbox, s step) error {
	wanted, isBatch := s.Frame.([]any)
	return in.await(func(frames []*received) error {
		for i, f := range frames {
			if s.Strict && i < in.last {
				continue
			}
			if s.Strict && i > in.last {
				break
			}
			list, gotBatch := f.value.([]any)
			if f.used || isUpdate(f.value) && !s.Strict || gotBatch != isBatch && !s.Strict {
				continue
			}
			if !isBatch && !s.Strict && member(f.value, "id") != member(s.Frame, "id") {
				continue
			}
			in.use(frames, i)
			if isBatch {
				return p.matchBatch(s, wanted, list)
			}
			return p.matchAnswer(s, f.value)
		}
		return errNotYet
	})
}

func (p *player) matchAnswer(s step, got any) error {
	captured, err := p.names.match(s.Frame, got)
	if err != nil {
		return err
	}
	p.names = captured
	return p.checkAnswer(s, got)
}

func (p *player) matchBatch(s step, want, got []any) error {
	if len(got) != len(want) {
		return fmt.Errorf("batch of %d answers, want %d: %v", len(got), len(want), got)
	}
	if !s.AnyOrder {
		captured, err := p.names.match(want, got)
		if err == nil {
			p.names = captured
		}
		return err
	}
	captured, err := p.names.match(map[string]any{contains: want}, got)
	if err == nil {
		p.names = captured
	}
	return err
}

func (p *player) expectUpdate(in *inbox, s step) error {
	id, _ := member(s.Frame, "params", "id").(string)
	want, _ := member(s.Frame, "params", "delivery").(map[string]any)
	at := in.positions[id]
	if at == nil {
		at = &position{}
		in.positions[id] = at
	}
	if s.Strict {
		return in.await(func(frames []*received) error { return p.strictUpdate(in, s, frames, id, want, at) })
	}
	if want["type"] == "snapshot" {
		return in.await(func(frames []*received) error { return p.nextSnapshot(in, frames, id, want, at) })
	}
	if s.Exact {
		return in.await(func(frames []*received) error {
			i := nextDelivery(frames, id, at)
			if i < 0 {
				return errNotYet
			}
			return p.wholeDelivery(in, frames, i, id, want, at)
		})
	}
	return in.await(func(frames []*received) error { return p.someChanges(in, s, frames, id, want, at) })
}

// strictUpdate wants the very next frame to be the delivery.
func (p *player) strictUpdate(in *inbox, s step, frames []*received, id string, want map[string]any, at *position) error {
	if in.last >= len(frames) {
		return errNotYet
	}
	if delivery(frames[in.last], id) == nil {
		return fmt.Errorf("next frame is %v, want a delivery of %s", frames[in.last].value, id)
	}
	if want["type"] == "snapshot" || s.Exact {
		return p.wholeDelivery(in, frames, in.last, id, want, at)
	}
	*at = position{frame: in.last}
	return p.someChanges(in, s, frames, id, want, at)
}

func nextDelivery(frames []*received, id string, at *position) int {
	for i := at.frame; i < len(frames); i++ {
		if delivery(frames[i], id) != nil && (i > at.frame || at.change == 0) {
			return i
		}
	}
	return -1
}

func (p *player) nextSnapshot(in *inbox, frames []*received, id string, want map[string]any, at *position) error {
	for i := at.frame; i < len(frames); i++ {
		if d := delivery(frames[i], id); d != nil && d["type"] == "snapshot" && !frames[i].used {
			return p.wholeDelivery(in, frames, i, id, want, at)
		}
	}
	return errNotYet
}

// wholeDelivery matches one delivery completely.
func (p *player) wholeDelivery(in *inbox, frames []*received, i int, id string, want map[string]any, at *position) error {
	got := delivery(frames[i], id)
	if err := p.chain(in, frames, i, id); err != nil {
		return err
	}
	captured, err := p.names.match(want, got)
	if err != nil {
		return err
	}
	p.names = captured
	in.use(frames, i)
	*at = position{frame: i + 1}
	return p.checkUpdate(frames[i].value)
}

// someChanges finds the changes of a step among those that came since the position, which may be spread over several deliveries.
func (p *player) someChanges(in *inbox, s step, frames []*received, id string, want map[string]any, at *position) error {
	missing, _ := want["changes"].([]any)
	missing = slices.Clone(missing)
	captured, now := p.names, *at
	var nearest error
	first, last := -1, -1
	for i := at.frame; i < len(frames); i++ {
		changes, _ := delivery(frames[i], id)["changes"].([]any)
		begin := 0
		if i == at.frame {
			begin = at.change
		}
		for j := begin; j < len(changes) && len(missing) > 0; j++ {
			candidates := missing[:1]
			if s.AnyOrder {
				candidates = missing
			}
			for k, candidate := range candidates {
				next, err := captured.match(candidate, changes[j])
				if err != nil {
					if member(candidate, "type") == member(changes[j], "type") {
						nearest = err
					}
					continue
				}
				if first < 0 {
					first = i
				}
				captured, last, now = next, i, position{frame: i, change: j + 1}
				missing = slices.Delete(missing, k, k+1)
				break
			}
		}
		if len(missing) == 0 {
			break
		}
	}
	if len(missing) > 0 {
		return errors.Join(errNotYet, nearest)
	}
	if last < 0 {
		return nil
	}
	return p.acceptChanges(in, frames, id, want, at, now, captured, first, last)
}

// acceptChanges holds the cursors against the step and moves the position.
func (p *player) acceptChanges(in *inbox, frames []*received, id string, want map[string]any, at *position, now position, captured names, first, last int) error {
	captured, err := captured.match(want["previousCursor"], delivery(frames[first], id)["previousCursor"])
	if err != nil {
		return fmt.Errorf("previousCursor: %w", err)
	}
	if captured, err = captured.match(want["cursor"], delivery(frames[last], id)["cursor"]); err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	for i := at.frame; i <= last; i++ {
		if delivery(frames[i], id) == nil {
			continue
		}
		if err := p.chain(in, frames, i, id); err != nil {
			return err
		}
		if err := p.checkUpdate(frames[i].value); err != nil {
			return err
		}
		in.use(frames, i)
	}
	p.names, *at = captured, now
	return nil
}

// chain wants previousCursor to be the cursor of the delivery before, unless the subscription began anew.
func (p *player) chain(in *inbox, frames []*received, i int, id string) error {
	got := delivery(frames[i], id)
	if got["type"] != "changes" {
		delete(in.started, id)
		return nil
	}
	if cursor, anew := in.started[id]; anew {
		if got["previousCursor"] == cursor {
			delete(in.started, id)
		}
		return nil
	}
	for j := i - 1; j >= 0; j-- {
		if before := delivery(frames[j], id); before != nil {
			if before["cursor"] != got["previousCursor"] {
				return fmt.Errorf("previousCursor is %v, but the delivery before ended at %v", got["previousCursor"], before["cursor"])
			}
			return nil
		}
	}
	return nil
}
