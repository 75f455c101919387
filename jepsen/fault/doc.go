// Package fault breaks what a broker stands on: its process, its disk, its clock
// and its network.
//
// Node runs `holdfast serve` as a process of its own, kills, pauses, stops and
// restarts it on the same data folder and ports, and sets its clock off. Cluster is
// three of them. The functions of file.go damage files of a stopped node as a power
// failure or a bad disk does. Disk is a small file system of its own, which can run
// full, freeze, or lose all that was not synced. Network is hosts for nodes, whose
// links can be cut, slowed and made to lose packets.
//
// The package knows the broker by its command line and its HTTP ports alone, and
// may be used by the tests of every room. It logs nothing; what the process
// wrote is in Node.Output.
package fault
