package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"holdfast.internal/jepsen/fault"
)

const (
	// warmUp is how long each side runs before the first measurement counts.
	warmUp = 500 * time.Millisecond
	// stopPatience is how long the node that was started may take to stop.
	stopPatience = time.Minute
)

// Run measures the phases one after another, writes the table to out as it
// grows and returns the report. It is an error if a phase got no message
// through; single failed requests are counted in the report.
func Run(ctx context.Context, options Options, out io.Writer) (report Report, err error) {
	o, err := options.withDefaults()
	if err != nil {
		return Report{}, err
	}
	product, stop, err := o.product(ctx)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var f *floor
	if o.Floor {
		if f, err = startFloor(ctx, o.Binary); err != nil {
			return Report{}, err
		}
		defer func() { err = errors.Join(err, f.stop()) }()
	}
	report = newReport(o)
	table := newTable(out)
	for _, phase := range o.Phases {
		r, err := o.measurePhase(ctx, product, f, phase)
		if err != nil {
			return report, err
		}
		report.Runs = append(report.Runs, r)
		table.row(r)
	}
	report.Aims = report.aims()
	table.aims(report.Aims)
	if err := table.err; err != nil {
		return report, fmt.Errorf("write table: %w", err)
	}
	if o.JSON != "" {
		return report, report.save(o.JSON)
	}
	return report, nil
}

// product returns the broker to measure: the endpoints, or a node started for
// the purpose, which stop ends.
func (o Options) product(ctx context.Context) (t *target, stop func() error, err error) {
	if len(o.Endpoints) > 0 {
		t, err := newTarget(o.Endpoints, 0)
		return t, func() error { return nil }, err
	}
	node, stop, err := Serve(ctx, o.Binary, o.Flags...)
	if err != nil {
		return nil, nil, err
	}
	t, err = newTarget([]string{node.Endpoint()}, node.PID())
	return t, stop, err
}

// Serve starts a node on free ports with its data in a temporary folder below
// the working directory, which is on a real disk where the temporary folder of
// the system may not be. stop ends the node and removes the folder.
func Serve(ctx context.Context, binary string, flags ...string) (node *fault.Node, stop func() error, err error) {
	dir, err := os.MkdirTemp(".", ".holdfast-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("make data folder: %w", err)
	}
	node, err = fault.Start(ctx, fault.Options{Binary: binary, DataDir: dir, Flags: flags})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		_, err := node.Stop(ctx)
		return errors.Join(err, os.RemoveAll(dir))
	}
	return node, stop, nil
}

// measurePhase measures one phase; by turns with the floor, as often as Rounds
// says, or once without one.
func (o Options) measurePhase(ctx context.Context, product *target, f *floor, phase string) (Measured, error) {
	if f == nil || len(floorCalls(phase, o)) == 0 {
		m, err := measure(ctx, product, phase, o)
		if err != nil {
			return Measured{}, err
		}
		return o.summary(phase, []*measurement{m}), nil
	}
	if err := f.learn(ctx, product, phase, o); err != nil {
		return Measured{}, err
	}
	warm := o
	warm.Duration = min(warmUp, o.Duration)
	for _, t := range []*target{f.target, product} {
		if _, err := measure(ctx, t, phase, warm); err != nil {
			return Measured{}, err
		}
	}
	var measured []*measurement
	var floors, ratios, floorCPU []float64
	for range o.Rounds {
		low, err := measure(ctx, f.target, phase, o)
		if err != nil {
			return Measured{}, fmt.Errorf("floor: %w", err)
		}
		m, err := measure(ctx, product, phase, o)
		if err != nil {
			return Measured{}, err
		}
		measured = append(measured, m)
		floors = append(floors, low.rate())
		floorCPU = append(floorCPU, low.perRequest(low.clientCPU+low.serverCPU))
		ratios = append(ratios, m.rate()/low.rate())
	}
	r := o.summary(phase, measured)
	r.FloorRate, r.Ratio, r.FloorCPU = median(floors), median(ratios), median(floorCPU)
	return r, nil
}

// median returns the middle one of values, the lower one of two.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
