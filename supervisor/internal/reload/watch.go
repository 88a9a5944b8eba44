package reload

import (
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// fileWatcher wraps the system's watcher; where there is none it watches nothing. Only followLoop uses it.
type fileWatcher struct {
	log     *zap.Logger
	poll    time.Duration
	system  *fsnotify.Watcher
	targets watchTargets
	// watched has the folders that are watched, refused those that cannot be and were reported.
	watched, refused map[string]bool
}

// newWatch makes a watcher that watches nothing yet. Without a system watcher the files are only read every poll.
func newWatch(log *zap.Logger, poll time.Duration) *fileWatcher {
	w := &fileWatcher{log: log, poll: poll, watched: map[string]bool{}, refused: map[string]bool{}}
	var err error
	if w.system, err = fsnotify.NewWatcher(); err != nil {
		w.system = nil
		w.warnUnwatched("configuration files cannot be watched", "", err)
	}
	return w
}

// warnUnwatched logs that changes will be noticed later than usual.
func (w *fileWatcher) warnUnwatched(text, folder string, err error) {
	w.log.Warn(text+"; they are read every so often instead", zap.String("folder", folder), zap.Duration("every", w.poll),
		zap.Error(err))
}

// watchPaths watches the folders that the places need now, and no others. It reports whether it watches a folder that it did not
// watch before: no event tells what happened in there until now, so the files must be read again.
func (w *fileWatcher) watchPaths(places []string) (more bool) {
	w.targets = targetsOf(places)
	if w.system == nil {
		return false
	}
	for folder := range w.watched {
		if !w.targets.folders[folder] {
			_ = w.system.Remove(folder) // it may be gone itself
			delete(w.watched, folder)
		}
	}
	for folder := range w.targets.folders {
		if w.watched[folder] {
			continue
		}
		// Systems bound the number of watched folders, and some file systems cannot be watched at all.
		if err := w.system.Add(folder); err != nil {
			if !w.refused[folder] {
				w.refused[folder] = true
				w.warnUnwatched("a folder of configuration files cannot be watched", folder, err)
			}
			continue
		}
		w.watched[folder], more = true, true
		delete(w.refused, folder)
	}
	return more
}

// events returns the system's events; without a watcher a nil channel, which blocks for ever.
func (w *fileWatcher) events() <-chan fsnotify.Event {
	if w.system == nil {
		return nil
	}
	return w.system.Events
}

func (w *fileWatcher) errors() <-chan error {
	if w.system == nil {
		return nil
	}
	return w.system.Errors
}

// isRelevant reports whether the files must be read because of an event. A folder that was removed is watched again when it returns.
func (w *fileWatcher) isRelevant(e fsnotify.Event) bool {
	if w.watched[e.Name] && e.Has(fsnotify.Remove|fsnotify.Rename) {
		_ = w.system.Remove(e.Name) // it is gone, and may be forgotten already
		delete(w.watched, e.Name)
	}
	return w.targets.covers(e.Name)
}

// close ends the system's watcher; its channels are closed with it.
func (w *fileWatcher) close() {
	if w.system != nil {
		_ = w.system.Close() // nothing is lost
	}
}
