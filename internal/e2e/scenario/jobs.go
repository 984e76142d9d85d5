package scenario

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// jobs are scenarios of Jobs.
func jobs() []Scenario {
	return []Scenario{
		{
			Name: "job-done",
			Steps: []Step{{
				Moment: "job-done", Doc: "It is done.", Status: Healthy,
				Reached: all(objects(1, jobCondition(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)), pods(1, inPhase(corev1.PodSucceeded))),
			}},
		},
		{
			Name: "job-failed",
			Steps: []Step{{
				Moment: "job-failed", Doc: "It has failed, and is not tried again.", Status: Down, Reason: batchv1.JobReasonPodFailurePolicy,
				Reached: all(objects(1, jobCondition(batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy)), pods(1, inPhase(corev1.PodFailed))),
			}},
		},
		{
			Name: "job-backoff-limit",
			Steps: []Step{
				{
					Moment: "job-backoff-limit-retrying", Doc: "It has failed once, and is tried again in some seconds.", Status: Unhealthy,
					Reached: all(pods(1, inPhase(corev1.PodFailed)), objects(1, func(job *batchv1.Job) error {
						if job.Status.Failed != 1 || job.Status.Active != 0 {
							return fmt.Errorf("the Job's status is %+v", job.Status)
						}
						return nil
					})),
				},
				{
					Moment: "job-backoff-limit", Doc: "It has failed twice, and is given up.", Status: Down, Reason: batchv1.JobReasonBackoffLimitExceeded,
					Reached: all(objects(1, jobCondition(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)), pods(2, inPhase(corev1.PodFailed))),
				},
			},
		},
		{
			Name: "job-deadline",
			Steps: []Step{{
				Moment: "job-deadline", Doc: "Its time is over; its pod was ended and is gone.", Status: Down, Reason: batchv1.JobReasonDeadlineExceeded,
				Reached: all(objects(1, jobCondition(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), pods(0)),
			}},
		},
	}
}

// cronJobs are deployed at the beginning of a minute, so that the first Job starts late enough.
func cronJobs() []Scenario {
	return []Scenario{
		{
			Name: "cronjob-done", Second: 3,
			Steps: []Step{{
				Moment: "cronjob-done", Doc: "The first Job is done.", Status: Healthy,
				Reached: all(objects(1, jobCondition(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)), happened("CronJob", "SawCompletedJob", "")),
			}},
		},
		{
			Name: "cronjob-failing", Second: 3,
			Steps: []Step{{
				Moment: "cronjob-failing", Doc: "The first Job has failed.", Status: Unhealthy,
				Reached: all(objects(1, jobCondition(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)), happened("CronJob", "SawCompletedJob", "")),
			}},
		},
	}
}
