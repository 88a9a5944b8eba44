// Package starved measures how many servers are connected on a machine with too little processor time for them, how soon, and
// at what cost: make starved. It holds only its test.
package starved
