package reload

import (
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// fileWatcher is the system's watcher, or nothing where there is none. One goroutine at a time.
type fileWatcher struct {
	log     *zap.Logger
	poll    time.Duration
	system  *fsnotify.Watcher
	targets watchTargets
	// watched are the folders that are watched, refused those that cannot be, which was told.
	watched, refused map[string]bool
}

func newWatch(log *zap.Logger, poll time.Duration) *fileWatcher {
	w := &fileWatcher{log: log, poll: poll, watched: map[string]bool{}, refused: map[string]bool{}}
	var err error
	if w.system, err = fsnotify.NewWatcher(); err != nil {
		w.system = nil
		w.warnUnwatched("configuration files cannot be watched", "", err)
	}
	return w
}

func (w *fileWatcher) warnUnwatched(text, folder string, err error) {
	w.log.Warn(text+"; they are read every so often instead", zap.String("folder", folder), zap.Duration("every", w.poll),
		zap.Error(err))
}

// watchPaths makes the watcher watch what belongs to the places now. It reports whether it watches a folder that it did not watch before:
// what happened in there until now nobody has told.
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

// events and errors block for ever without a watcher.
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

// isRelevant reports whether the files are to be read because of an event. A folder that ends is watched anew if it comes back.
func (w *fileWatcher) isRelevant(e fsnotify.Event) bool {
	if w.watched[e.Name] && e.Has(fsnotify.Remove|fsnotify.Rename) {
		_ = w.system.Remove(e.Name) // it is gone, and may be forgotten already
		delete(w.watched, e.Name)
	}
	return w.targets.covers(e.Name)
}

func (w *fileWatcher) close() {
	if w.system != nil {
		_ = w.system.Close() // nothing is lost
	}
}
