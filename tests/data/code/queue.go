package queue

import "sync"

// Queue holds jobs until a worker takes them.
// 任务队列。
type Queue struct {
	mu   sync.Mutex
	jobs []string
}

// Push adds a job at the end.
func (q *Queue) Push(job string) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.jobs = append(q.jobs, job)
}

func New() *Queue {
	return &Queue{}
}
