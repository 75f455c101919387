package raftfsm

import (
	"errors"
	"fmt"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// The first byte of an encoded outcome that is not the number of a result.
const (
	outcomeNothing      = 0
	outcomeTopicError   = 252
	outcomeSessionError = 253
	outcomeSettingError = 254
	outcomeError        = 255
)

var errOutcome = errors.New("not an outcome")

// AppendOutcome encodes an outcome, without its Bodies, for another node.
func AppendOutcome(dst []byte, o *Outcome) []byte {
	f := fields{data: dst}
	f.u64(o.Index)
	outcomeFields(&f, o)
	return f.data
}

// DecodeOutcome is the inverse of AppendOutcome. It also returns what follows
// the outcome in b.
func DecodeOutcome(b []byte) (Outcome, []byte, error) {
	f := fields{data: b, reading: true}
	o := Outcome{Index: f.u64(0)}
	outcomeFields(&f, &o)
	if f.err != nil {
		return Outcome{}, nil, fmt.Errorf("decode outcome: %w", f.err)
	}
	return o, f.data, nil
}

// outcomeFields are those of o's Result or Err: the one description of a result
// that digests, snapshots and other nodes see.
func outcomeFields(f *fields, o *Outcome) {
	if f.reading {
		readOutcome(f, o)
		return
	}
	if o.Err != nil {
		writeOutcomeError(f, o.Err)
		return
	}
	if o.Result == nil {
		f.byte(outcomeNothing)
		return
	}
	k := findKind(resultKinds[:], o.Result)
	f.byte(k.number)
	k.write(f, o.Result)
}

func writeOutcomeError(f *fields, err error) {
	if e, ok := errors.AsType[*sqs.Error](err); ok {
		f.byte(outcomeError)
		errorFields(f, *e)
		return
	}
	if e, ok := errors.AsType[*sns.Error](err); ok {
		f.byte(outcomeTopicError)
		topicErrorFields(f, *e)
		return
	}
	if e, ok := errors.AsType[*SessionError](err); ok {
		f.byte(outcomeSessionError)
		sessionErrorFields(f, *e)
		return
	}
	e, ok := errors.AsType[*SettingError](err)
	if !ok {
		panic(fmt.Sprintf("raftfsm: %T is no answer", err)) // Outcome.Err lists all there are
	}
	f.byte(outcomeSettingError)
	settingErrorFields(f, *e)
}

func readOutcome(f *fields, o *Outcome) {
	switch number := f.byte(0); number {
	case outcomeNothing:
	case outcomeError:
		e := errorFields(f, sqs.Error{})
		o.Err = &e
	case outcomeTopicError:
		e := topicErrorFields(f, sns.Error{})
		o.Err = &e
	case outcomeSessionError:
		e := sessionErrorFields(f, SessionError{})
		o.Err = &e
	case outcomeSettingError:
		e := settingErrorFields(f, SettingError{})
		o.Err = &e
	default:
		k := findNumber(resultKinds[:], number)
		if k == nil {
			f.fail(fmt.Errorf("%w: %w %d", errOutcome, errKind, number))
			return
		}
		o.Result = k.read(f)
	}
}

func sessionErrorFields(f *fields, e SessionError) SessionError {
	e.Session = f.u64(e.Session)
	e.Number = f.u64(e.Number)
	e.Reason = SessionReason(f.byte(byte(e.Reason)))
	return e
}

func settingErrorFields(f *fields, e SettingError) SettingError {
	e.Name = f.str(e.Name)
	e.Value = f.str(e.Value)
	e.Reason = f.str(e.Reason)
	return e
}
