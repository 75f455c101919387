package sns

import (
	"slices"
	"strings"
)

// Tag is a cost allocation tag of a topic.
type Tag struct{ Key, Value string }

// SortTags sorts tags by key, and refuses one key twice (AWS recording test_tags).
func SortTags(tags []Tag) *Error {
	slices.SortFunc(tags, func(a, b Tag) int { return strings.Compare(a.Key, b.Key) })
	for i := range tags {
		if i > 0 && tags[i].Key == tags[i-1].Key {
			return Invalid("Duplicated keys are not allowed.")
		}
		if strings.HasPrefix(strings.ToLower(tags[i].Key), "aws:") {
			return Invalid("Tags Reason: keys that begin with aws: are reserved")
		}
	}
	return nil
}

func tooManyTags() *Error {
	return &Error{Code: TagLimitExceeded, Message: "Could not complete request: tag quota of per resource exceeded"}
}

func (s *State) tagResource(c TagResource) (Result, *Error) {
	t, err := s.taggable(c.Topic)
	if err != nil {
		return nil, err
	}
	tags := slices.Clone(t.tags)
	for _, tag := range c.Tags {
		i, ok := findTag(tags, tag.Key)
		if ok {
			tags[i].Value = tag.Value
		} else {
			tags = slices.Insert(tags, i, tag)
		}
	}
	if len(tags) > MaxTags {
		return nil, tooManyTags()
	}
	t.tags = tags
	return Done{}, nil
}

func (s *State) untagResource(c UntagResource) (Result, *Error) {
	t, err := s.taggable(c.Topic)
	if err != nil {
		return nil, err
	}
	tags := slices.Clone(t.tags)
	t.tags = slices.DeleteFunc(tags, func(tag Tag) bool { return slices.Contains(c.Keys, tag.Key) })
	return Done{}, nil
}

func (s *State) listTagsForResource(c ListTagsForResource) (Result, *Error) {
	t, err := s.taggable(c.Topic)
	if err != nil {
		return nil, err
	}
	return ListTagsForResourceResult{Tags: slices.Clone(t.tags)}, nil
}

// taggable is sound with the error that the actions about tags have.
func (s *State) taggable(key TopicKey) (*topic, *Error) {
	if s.topics[key] == nil {
		return nil, noSuchResource()
	}
	return s.sound(key)
}

func findTag(tags []Tag, key string) (int, bool) {
	return slices.BinarySearchFunc(tags, key, func(t Tag, key string) int { return strings.Compare(t.Key, key) })
}
