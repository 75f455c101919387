package sqs

import (
	"slices"
	"strings"
)

// tagQueue adds all tags or, over the limit, none.
func (s *State) tagQueue(c TagQueue) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	tags := slices.Clone(q.tags)
	for _, t := range c.Tags {
		i, ok := slices.BinarySearchFunc(tags, t.Key, compareTag)
		if ok {
			tags[i] = t
			continue
		}
		tags = slices.Insert(tags, i, t)
	}
	if len(tags) > MaxTags {
		return nil, nil, tooManyTags(q.key.Name)
	}
	q.tags = tags
	return Done{}, nil, nil
}

func (s *State) untagQueue(c UntagQueue) (Result, []Event, *Error) {
	q, err := s.sound(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	q.tags = slices.DeleteFunc(slices.Clone(q.tags), func(t Tag) bool { return slices.Contains(c.Keys, t.Key) })
	return Done{}, nil, nil
}

func (s *State) listQueueTags(c ListQueueTags) (Result, []Event, *Error) {
	q, err := s.found(c.Queue)
	if err != nil {
		return nil, nil, err
	}
	return ListQueueTagsResult{Tags: slices.Clone(q.tags)}, nil, nil
}

func compareTag(t Tag, key string) int { return strings.Compare(t.Key, key) }
