// Package reload follows configuration files: it watches the places where they are or may appear, reads them when they may have
// changed, and applies the consequences. Package plan, which is pure, decides what they are; its comment says what counts of a
// file, and when.
//
//	f := reload.Follow(reload.Config{Reading: found.Reading, Apply: apply})
//	defer f.Close()
//
// An embedding program uses supervisor.Follow, which makes Apply from a manager.
//
//	file system ── events, Poll ──▶ fileWatcher ──▶ Follower ── files ──▶ plan.Tracker
//	                                                   └── Decision ──▶ Apply (the manager)
//
// Guarantees:
//
//   - The folders of the files are watched, not the files: an editor that writes a new file and renames it is noticed as well as
//     one that writes in place, and so is a file that appears where there was none, also together with its folder. Symbolic
//     links are followed step by step, and each folder on the way is watched: a link that is changed to another folder, as
//     Kubernetes does with its ..data, is noticed.
//   - In addition everything is read every Poll, so that changes of which no event comes (a network file system, a limit of the
//     system, a lost event) are noticed later. If a folder cannot be watched the log says so once.
//   - Apply is called from one goroutine, one call at a time. The following ends with Close, or when Done is closed.
//   - At most 128 folders are watched, and the files are read at most 50 times a second.
//
// Not promised: that a change is noticed while the file system itself does not answer. Environment variables keep the values
// of this process: a reload reads files only.
package reload
