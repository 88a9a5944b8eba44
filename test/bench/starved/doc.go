// Package starved measures how many servers are connected on a machine that has too little processor time for them, how soon,
// and at what cost: make starved. It holds nothing but its test.
package starved
