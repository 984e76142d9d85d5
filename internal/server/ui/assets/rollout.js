// Whether the rollout of a workload of Kubernetes fails, and an earlier revision exists.

import { known } from './status.js';

const FAULTS = new Set(['Down', 'Error', 'Unhealthy']);

/** rolloutFails is true if the rollout of an object fails, and its definition says that there is an earlier revision. */
export function rolloutFails({ object: { group, kind }, health }, definition) {
  const current = definition?.current;
  if (group !== 'apps' || !Object.hasOwn(KINDS, kind) || !current || !FAULTS.has(known(health))) return false;
  const { metadata = {}, spec = {}, status = {} } = current;
  return KINDS[kind](status, metadata.annotations ?? {}, spec);
}

// The conditions of each kind. A Deployment whose rollout is complete has the reason NewReplicaSetAvailable, whatever happens later.
const KINDS = {
  Deployment: ({ conditions = [] }, annotations, { revisionHistoryLimit }) => {
    const progressing = conditions.find?.(({ type }) => type === 'Progressing');
    return Boolean(progressing) && progressing.reason !== 'NewReplicaSetAvailable' &&
      revisionHistoryLimit !== 0 && annotations['deployment.kubernetes.io/revision'] > 1;
  },
  StatefulSet: ({ currentRevision, updateRevision }) => Boolean(currentRevision) && Boolean(updateRevision) && currentRevision !== updateRevision,
  DaemonSet: ({ updatedNumberScheduled = 0, desiredNumberScheduled = 0 }, annotations, { revisionHistoryLimit }) =>
    updatedNumberScheduled < desiredNumberScheduled && revisionHistoryLimit !== 0 && annotations['deprecated.daemonset.template.generation'] > 1,
};
