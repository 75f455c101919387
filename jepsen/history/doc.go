// Package history records what the clients of a test asked, what they were
// told, and when, as JSON lines.
//
// Each operation is written twice: before the call ("invoke") and after it
// ("ok", "fail" or "info"), so that a run which is killed leaves a file that
// can still be judged. All times are nanoseconds since the start of the run, on
// the monotonic clock of the one process that records.
package history
