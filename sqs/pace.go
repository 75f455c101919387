package sqs

import "slices"

// pace keeps a move task to its rate. In the long run it allows exactly rate
// messages a second; what it was late with it makes up for, as far as that is
// one second's worth and takes no more than a tenth above the rate in any second.
type pace struct {
	rate   int    // messages a second
	earned int    // thousandths of a message that were due at the time at
	at     Time   // of the latest turn
	recent []turn // in the second before, oldest first
}

// turn is a number of messages moved at once.
type turn struct {
	at    Time
	count int
}

// turnsPerSecond is how many turns a task takes at most. More would cost more
// entries in the log, fewer would move messages in bursts.
const turnsPerSecond = 20

// second is the window in which a pace counts.
const second Time = 1000

// newPace is the pace of a task that starts now, with a turn. Rate 0 stands for
// none.
func newPace(now Time, rate int) pace {
	p := pace{rate: rate, at: now}
	if rate > 0 {
		p.earned = p.batch() * 1000
	}
	return p
}

// batch is the least that a turn is taken for.
func (p *pace) batch() int { return (p.rate + turnsPerSecond - 1) / turnsPerSecond }

// most is what may be moved in any second.
func (p *pace) most() int { return p.rate + p.rate/10 }

// due is when the next turn is.
func (p *pace) due() Time {
	at := p.at
	if missing := p.batch()*1000 - p.earned; missing > 0 {
		at += Time((missing + p.rate - 1) / p.rate)
	}
	used := 0
	for _, t := range slices.Backward(p.recent) {
		if used += t.count; used > p.most()-p.batch() {
			return max(at, t.at+second)
		}
	}
	return at
}

// advance lets time pass until now, and returns how many messages may be moved.
func (p *pace) advance(now Time) int {
	worth := int64(now-p.at)*int64(p.rate) + int64(p.earned)
	p.earned = int(min(worth, int64(p.rate)*1000))
	p.at = now
	room := p.most()
	p.recent = slices.DeleteFunc(p.recent, func(t turn) bool { return t.at <= now-second })
	for _, t := range p.recent {
		room -= t.count
	}
	return min(p.earned/1000, room)
}

// spend takes note of a turn, after advance.
func (p *pace) spend(count int) {
	if count > 0 {
		p.earned -= count * 1000
		p.recent = append(p.recent, turn{at: p.at, count: count})
	}
}
