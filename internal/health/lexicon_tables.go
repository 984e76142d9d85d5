package health

import "strings"

// The words by which the status of an unknown kind is classified. Each table has its words in groups, and each group
// the reason why its words are in the table. No word is in two classes.
//
// Source: "Typical status properties" of the API conventions for conditions. There is no convention for phases and
// states: those words come from the documentation of operators.

// classes are the tables of single words by their meaning in a phase, a state, a reason or a type of a condition.
var classes = map[meaning]lexicon{
	good: newLexicon(
		wordGroup{"the object serves its purpose", `ready running active healthy available ok okay up online green normal stable working
			operational nominal fine alive live usable optimal fresh intact consistent reachable routable listening streaming
			responsive running serving operating functioning archiving replicating exists`},
		wordGroup{"the desired state is reached", `synced insync synchronized synchronised uptodate updated reconciled deployed
			established applied programmed provisioned installed promoted enforced satisfied sufficient`},
		wordGroup{"another object accepted or holds it", `bound accepted accepting admitted attached mounted connected joined linked
			elected enabled offered open permitted authenticated`},
		wordGroup{"a check passed", `valid compliant conformant passed pass verified signed issued resolved provided pulled clean`},
		wordGroup{"an earlier fault is over", `restored recovered`},
	),
	done: newLexicon(
		wordGroup{"a run has come to its end", `succeeded succeed success successful successfully complete completed done finished ended executed`},
	),
	step: newLexicon(
		wordGroup{"one step on the way is done, which says little of the whole", `created initialized initialised configured
			registered scheduled validated started approved submitted detected selected allocated prepared adopted observed
			processed built rendered generated loaded found present assigned enqueued planned discovered imported exported leased
			stored indexed defined resized copied bootstrapped injected published`},
	),
	busy: newLexicon(
		wordGroup{"work is under way", `pending progressing inprogress requested creating updating deleting terminating retry
			rollback rollout switchover failover setting being new`},
		wordGroup{"something else comes first", `waiting wait waits awaiting queued unscheduled unbound behind required delayed
			postponed deferred`},
		wordGroup{"the observed state lags behind the spec", `outofsync stale incomplete unsynced`},
	),
	rest: newLexicon(
		wordGroup{"somebody suspended the object", `suspended suspend paused pause hibernated hibernation hibernating stopped halted
			off disabled inactive sleeping asleep standby shutdown quiesced maintenance frozen closed parked cordoned deactivated`},
		wordGroup{"nothing is wanted", `scaledtozero scaleddown`},
	),
	bad: newLexicon(
		wordGroup{"the outcome is a failure", `failed failure failures fail fails failing aborted abort aborting cancelled canceled
			inconclusive rolledback rollbacked terminated killed oomkilled evicted preempted evacuated dropped`},
		wordGroup{"an error, a warning or an alert is reported", `error errors errored erroneous err errs exception panic unknownerror
			warning warnings warn problem problems issue issues incident alert alerting alerts firing critical crit red yellow
			bad wrong incorrect poor`},
		wordGroup{"the object works in part, or not reliably", `degraded unhealthy impaired abnormal unstable faulted faulty fault
			broken flapping lagging leaking recoverable partially partial disrupted disruption fallback readonly unready
			uncertain frequent`},
		wordGroup{"the object does not work", `lost down dead offline unavailable unreachable disconnected inaccessible inoperable
			nonoperational defunct outage severed splitbrain corrupt corrupted corruption unrecoverable terminal wedged`},
		wordGroup{"a container crashes", `backoff crash crashed crashing crashloop crashloopbackoff`},
		wordGroup{"no progress is made", `blocked stuck stalled deadlock timeout expired irreconcilable`},
		wordGroup{"a person has to act", `attention intervention`},
		wordGroup{"a resource does not suffice", `pressure exceeded exceeding overloaded insufficient too unschedulable infeasible`},
		wordGroup{"another party refuses", `rejected denied refused forbidden unauthorized unauthorised unauthenticated`},
		wordGroup{"the spec is wrong, or contradicts another object", `invalid misconfigured unsupported noncompliant violated violation
			violations conflict conflicts conflicted conflicting mismatch mismatched incompatible undefined ambiguous
			unprocessable unmet`},
		wordGroup{"a reference leads nowhere", `missing notfound unresolved orphan orphaned orphans dangling`},
		wordGroup{"an ability is denied", `unable cannot`},
	),
	unknownWord: newLexicon(
		wordGroup{"the writer of the status does not know", `unknown undetermined`},
	),
	neutral: newLexicon(
		wordGroup{"nothing is there to have a state", `idle none empty nothing unused skipped omitted notapplicable notrequired
			notneeded notconfigured notenabled`},
		wordGroup{"a role among equals", `default primary secondary leader leading follower following detached owning`},
		wordGroup{"an upgrade is possible", `upgradeavailable updateavailable updatesavailable upgradesavailable deprecated migratable
			upgradeable`},
		wordGroup{"a subject, and no activity, ends in -ing", `existing balancing managing logging monitoring networking routing peering sharing
			binding mapping polling tracking caching tracing autoscaling scaling encoding matching staging billing pricing
			peaking string ring king thing ping spring`},
		wordGroup{"a function word ends in -ing", `during according using`},
	),
}

// stems classify longer forms of words by their beginnings.
var stems = []string{ // all are bad
	"fail", "error", "degrad", "corrupt", "invalid", "reject", "unhealth", "crash", "misconfig", "mismatch", "timeout",
	"unavail", "unreach",
}

// compounds make one word of words that mean something else together, or that are written in several ways.
var compounds = compoundReplacer(
	[2]string{"up to date", "uptodate"}, [2]string{"in progress", "inprogress"}, [2]string{"in sync", "insync"},
	[2]string{"out of sync", "outofsync"}, [2]string{"out of date", "stale"}, [2]string{"back off", "backoff"},
	[2]string{"crash loop", "crashloop"}, [2]string{"timed out", "timeout"}, [2]string{"time out", "timeout"},
	[2]string{"not found", "notfound"}, [2]string{"not applicable", "notapplicable"}, [2]string{"not required", "notrequired"},
	[2]string{"not needed", "notneeded"}, [2]string{"not configured", "notconfigured"}, [2]string{"not enabled", "notenabled"},
	[2]string{"upgrade available", "upgradeavailable"}, [2]string{"update available", "updateavailable"},
	[2]string{"updates available", "updatesavailable"}, [2]string{"upgrades available", "upgradesavailable"},
	[2]string{"scaled to zero", "scaledtozero"}, [2]string{"read only", "readonly"}, [2]string{"requires approval", "pending"},
	[2]string{"split brain", "splitbrain"}, [2]string{"shut down", "shutdown"}, [2]string{"scaled down", "scaleddown"},
	[2]string{"log in", "login"}, [2]string{"stand by", "standby"}, [2]string{"roll back", "rollback"},
	[2]string{"rolled back", "rolledback"}, [2]string{"roll out", "rollout"}, [2]string{"fail over", "failover"},
	[2]string{"switch over", "switchover"}, [2]string{"available replicas", "replicas available"},
	[2]string{"in active", "inactive"}, [2]string{"un healthy", "unhealthy"}, [2]string{"on line", "online"},
	[2]string{"off line", "offline"}, [2]string{"intervention required", "intervention"}, [2]string{"up and running", "running"}, [2]string{"at latest known", "uptodate"},
)

func compoundReplacer(pairs ...[2]string) *strings.Replacer {
	var flat []string
	for _, p := range pairs {
		flat = append(flat, " "+p[0]+" ", " "+p[1]+" ")
	}
	return strings.NewReplacer(flat...)
}

// Tables about single words within a text.
var (
	negations = newLexicon(
		wordGroup{"the next word is denied", "not non isnt arent wasnt"},
		wordGroup{"the next word is denied for all time", "never"},
		wordGroup{"the next word is absent", "no without zero 0"},
	)
	// strictNegations make bad news of a word that is in no class. The others may say anything of it: NoPodsMatched.
	strictNegations = newLexicon(
		wordGroup{"the word is a state to be reached", "not isnt non"},
		wordGroup{"the word is a state out of reach", "never"},
	)
	// particles belong to the activity before them.
	particles = newLexicon(wordGroup{"scaling up, rolling out", "up down out in back over off"})
	// notYetFaults are bad words that controllers also write of an object that is still being set up.
	notYetFaults = newLexicon(
		wordGroup{"another object does not exist yet", "missing notfound unresolved unmet insufficient"},
		wordGroup{"the object does not answer yet", "unavailable unready unreachable disconnected blocked"},
		wordGroup{"the fault is mild", "partially partial warning recoverable"},
	)
	// downPhases are bad words that mean, as a whole phase, that the object does not work at all.
	downPhases = newLexicon(
		wordGroup{"the run has failed", "failed failure"},
		wordGroup{"the program crashes", "crashloopbackoff crashloop"},
		wordGroup{"the object is gone or off", "down dead lost offline faulted red broken unavailable"},
	)
	// plainFaults mean a fault wherever they are, even under an unknown key: "replication: broken".
	plainFaults = newLexicon(wordGroup{"no good state has such a name", `failed failure broken error errored degraded unhealthy lost
		crashed dead faulted faulty corrupted corrupt offline unreachable disconnected unavailable`})
	// runningWords say only that something runs, and not that it will succeed.
	runningWords = newLexicon(wordGroup{"a run is under way", "running active working live streaming alive"})
	// firstSteps are states that an object has had since its creation.
	firstSteps = newLexicon(wordGroup{"the setup of a new object", `creating provisioning pending initializing initialising
		bootstrapping installing new preparing starting`})
	// suspensionFillers may accompany a word for rest without changing it: PausedByUser.
	suspensionFillers = newLexicon(
		wordGroup{"the suspended activity", `reconcile reconciliation reconciler deployment rollout scaling autoscaling operator instance`},
		wordGroup{"the actor and the place of the suspension", "by user manually spec in under for or"},
		wordGroup{"the suspension begins", "pausing suspending stopping hibernating"},
	)
)

// Tables about the names of kinds, conditions, flags and fields.
var (
	// triggerKinds start runs, and do not run to an end themselves.
	triggerKinds = newLexicon(wordGroup{"the kind starts others at times", "cron schedule scheduled scaled"})
	// streamKinds process data without an end, also as a job.
	streamKinds = newLexicon(wordGroup{"the kind processes a stream", "stream streams streaming flink beam"})
	// finiteKinds run to an end.
	finiteKinds = newLexicon(
		wordGroup{"a run", "run job jobs workflow task execution attempt session process action operation command request ops"},
		wordGroup{"a transfer of data", `backup restore migration export import upload download transfer dump clone sync`},
		wordGroup{"a check", "experiment test benchmark chaos analysis verification query stress check scan"},
		wordGroup{"a change", "build upgrade switchover failover rebalance reboot rollback repair plan playbook"},
	)
	// endlessKinds do not run to an end.
	endlessKinds = newLexicon(
		wordGroup{"a declaration", "policy template config definition class location repository"},
		wordGroup{"a service", `storage pool queue controller operator cluster provider gateway service server deployment set store health
			application app notebook workspace pipeline connector function manager`},
	)
	// wholeWords in a key mean that its value is about the whole object.
	wholeWords = newLexicon(wordGroup{"the state of everything", "current overall printable lifecycle health cluster aggregate summary total"})
	// fillerWords in the name of a condition do not restrict it to a part.
	fillerWords = newLexicon(wordGroup{"no part is named", "condition resource resources all is fully everything"})
	// summaryWords at the end of the name of a condition sum up the object.
	summaryWords = newLexicon(wordGroup{"the state of the whole", `ready available healthy synced insync established accepted programmed
		succeeded successful complete completed deployed running online active installed reconciled provisioned bound operational
		up live serving uptodate`})
	// optionalFlags are good words whose contrary is not bad: a flag "leader: false" is no fault.
	optionalFlags = newLexicon(
		wordGroup{"a state that comes and goes", "active live running streaming leader elected"},
		wordGroup{"an option", "enabled permitted provided usable"},
		wordGroup{"a step", "attached admitted promoted joined signed linked pulled mounted passed verified authenticated fresh restored recovered"},
	)
	// partFlags are good words that count in the parts of a status too.
	partFlags = newLexicon(wordGroup{"the part is meant to have it", "ready healthy available synced valid"})
	// overallTypes are types of conditions that are about the whole object, even with the severity Info.
	overallTypes = newLexicon(wordGroup{"the object's summary", "Ready Available Healthy Succeeded"})
	// temporaryStates at the end of the name of a condition come and go without a fault.
	temporaryStates = newLexicon(wordGroup{"a state that comes and goes", "active running live streaming enabled"})
	// upgradeWords in a type or a reason are about a later version.
	upgradeWords = newLexicon(wordGroup{"a later version", "upgrade upgrades update updates install plan"})
	// attainedStates at the end of an unclassified type mean that the condition should be True.
	attainedStates = newLexicon(wordGroup{"a goal", "formed reached achieved attained agreed converged replicated quorum balanced secured met"})
	// unwantedStates end in -ed like a goal, but are none.
	unwantedStates = newLexicon(
		wordGroup{"a limit", "throttled limited exhausted overcommitted restricted needed locked"},
		wordGroup{"a change", "modified changed drifted deleted removed migrated truncated replaced scaled triggered ignored"},
		wordGroup{"a property", "managed encrypted shared exposed published monitored pinned customized customised"},
		wordGroup{"an intervention", "tainted interrupted restarted isolated fenced quarantined"},
	)
)

// Tables about the reasons of idle objects.
var (
	pauseReasons   = newLexicon(wordGroup{"the controller does nothing, and the object goes on", "paused pause unmanaged"})
	suspendReasons = newLexicon(wordGroup{"the object waits", "suspended suspend"})
)

// Tables about the keys of a status.
var (
	// stateKeys end the key of a phase or a state.
	stateKeys = newLexicon(wordGroup{"the value is a state", `phase state status health stage robustness compliance compliant readiness
		result outcome conclusion availability verdict condition healthiness liveness progress`})
	// errorKeys begin the key of an error, and errorDetailKeys end it: errorMessage.
	errorKeys       = newLexicon(wordGroup{"the value is an error", "error errors failure failures err errs"})
	errorDetailKeys = newLexicon(wordGroup{"the value describes the error", `message messages msg reason details detail description text
		info string cause`})
	// wordKeys hold words that are no faults of the object, whatever they say.
	wordKeys = newLexicon(wordGroup{"the value is an option", "type name policy action mode on event level severity"})
	// otherTimeKeys begin the key of a value that is not about the present.
	otherTimeKeys = newLexicon(
		wordGroup{"the desired state", "desired target expected wanted next"},
		wordGroup{"the past", "previous prior old initial history past"},
	)
	// pastKeys are those of otherTimeKeys that are so as a whole key too.
	pastKeys = newLexicon(wordGroup{"the past", "previous history"})
	// declaredKeys end the key of a value that was declared, or that is a record.
	declaredKeys = newLexicon(
		wordGroup{"a declaration", `spec template templates config configuration parameters inputs outputs labels annotations selector
			selectors manifest manifests values env metadata schema`},
		wordGroup{"a record", "history logs events revisions"},
	)
	// lastStateKeys are about the past behind "last".
	lastStateKeys = newLexicon(wordGroup{"lastState", "state phase status"})
	// targetKeys end the key of a table or a list that has a state for each target of the object.
	targetKeys = newLexicon(wordGroup{"the same is done in several places", "statuses reporters targets parents ancestors clusters destinations namespaces"})
	// ratioKeys end the key of a text such as "1/2".
	ratioKeys = newLexicon(wordGroup{"a count of parts", "ready replicas available healthy pods nodes members instances"})
	// failedCounts and countedParts are the words of a count of failed parts: failedNodes.
	failedCounts = newLexicon(wordGroup{"the parts do not work", "failed degraded unhealthy"})
	countedParts = newLexicon(wordGroup{"the parts are permanent", "machine machines node nodes replicas pods instances members tasks count"})
)
