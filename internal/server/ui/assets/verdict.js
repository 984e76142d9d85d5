// The status of a workload with its cause, and the facts to judge how current it is.

import { h, icon } from './dom.js';
import { causes, known, sinceOf, typeName, fallbackCause } from './status.js';
import { count, long, many, isolated } from './text.js';
import { durationText, sinceStamp, stamp } from './time.js';

/** verdict is the header of a workload's page. `began` is when it was last Healthy; empty if unknown or the same as its since. */
export function verdict(workload, began = '') {
  const status = known(workload.status);
  const since = sinceOf(workload);
  return h('section', { class: 'verdict', 'data-status': status, 'aria-labelledby': 'name' },
    h('div', { class: 'verdict-name' },
      h('h1', { id: 'name' }, isolated(workload.name || `${typeName(workload.type)} ${workload.id}`)),
      workload.type === 'HelmWorkloadInstance' && h('span', { class: 'tag' }, 'Helm')),
    h('div', { class: 'verdict-status' }, icon(status, 'large'), h('p', { class: 'status-word' }, status,
      since && h('span', { class: 'for' }, began ? ' · not Healthy for ' : ' for ', sinceStamp(began || since)))),
    cause(workload),
    facts(workload, began),
    notices(workload));
}

function cause(workload) {
  if (workload.silent) return offline(workload);
  const [what] = causes(workload);
  if (!what) {
    const healthy = known(workload.status) === 'Healthy';
    return h('div', { class: 'cause' }, h('p', { class: 'cause-what' }, healthy ? 'Everything runs as declared.' : isolated(fallbackCause(workload) || 'No cause was reported.')));
  }
  return h('div', { class: 'cause' }, h('p', { class: 'cause-what' }, long(what, 400)), causeChain(workload));
}

// The current status is unknown. The last one is shown as history.
function offline(workload) {
  const { said, heardAt } = workload;
  const cluster = workload.clusterName || workload.clusterUID;
  const [what] = causes(workload);
  return h('div', { class: 'cause' },
    h('p', { class: 'cause-what' }, 'No report', heardAt && [' since ', stamp(heardAt)],
      ' (last status: ', said ? known(said) : 'none', ')'),
    h('p', { class: 'cause-note' }, 'The agent', cluster && [' of cluster ', isolated(cluster)], ' stopped reporting', heardAt && [' at ', stamp(heardAt)],
      '. The current status is unknown.'),
    what && h('p', { class: 'cause-note' }, 'Last reported cause: ', long(what, 400)),
    causeChain(workload));
}

const ENDS = 6; // links shown at both ends of a long chain: those next to the object at fault, and the last ones up to the listed object

function causeChain(workload) {
  const [, ...links] = causes(workload);
  if (!links.length) return null;
  const item = (why) => h('li', {}, long(why, 400));
  const between = links.slice(ENDS, -ENDS);
  if (between.length < 2) return h('ol', { class: 'cause-why', 'aria-label': 'Leads to' }, links.map(item));
  const rest = h('li', { class: 'between' }, h('details', {}, h('summary', {}, `${count(between.length)} more`), h('ol', {}, between.map(item))));
  return h('ol', { class: 'cause-why', 'aria-label': 'Leads to' }, links.slice(0, ENDS).map(item), rest, links.slice(-ENDS).map(item));
}

function facts(workload, began) {
  const fact = (name, ...value) => h('div', { 'data-key': name }, h('dt', {}, name), h('dd', {}, ...value));
  return h('dl', { class: 'facts' },
    workload.silent && fact('Unknown since', workload.heardAt ? stamp(workload.heardAt) : 'unknown'),
    workload.silent && workload.said && fact(`Was ${known(workload.said)} since`, workload.since ? stamp(workload.since) : 'unknown'),
    !workload.silent && fact('Since', ...begins(workload, began)),
    workload.reason && fact(workload.silent ? 'Last reason' : 'Reason', isolated(workload.reason)),
    fact('Cluster', workload.clusterName || workload.clusterUID ? isolated(workload.clusterName || workload.clusterUID) : 'unknown'),
    fact('Report delay', delay(workload)),
    workload.heardAt && fact('Last report', sinceStamp(workload.heardAt, ' ago')),
    fact(typeName(workload.type), h('span', { class: 'mono' }, workload.id)));
}

const SAME = 5_000; // times that differ by less are one begin, in milliseconds: an Event of a change and its report have two clocks

// begins is since when the present cause holds, followed by when the workload was last Healthy, or else the start of its status, if
// that is another time.
function begins({ status, since, causeSince }, began) {
  if (!since) return ['unknown'];
  const cause = causeSince ?? since;
  const start = began || since;
  if (Math.abs(Date.parse(cause) - Date.parse(start)) < SAME) return [stamp(start)];
  return [stamp(cause), ` (${began ? 'not Healthy' : known(status)} since `, stamp(start), ')'];
}

function delay(workload) {
  if (!workload.heardAt) return 'unknown';
  if (workload.silent) return 'agent offline';
  return workload.delaySeconds < 1 ? 'none' : durationText(workload.delaySeconds);
}

// Missing reports are shown, so that users need not guess them.
function notices({ silent, pending = 0, rejected = 0, dropped = 0 }) {
  const notice = (name, ...text) => h('li', { class: `notice ${name}` }, icon('lost'), h('span', {}, ...text));
  if (!pending && !rejected && !dropped) return null;
  return h('ul', { class: 'notices', 'aria-label': 'Delivery' },
    pending > 0 && notice('pending', silent ? h('b', {}, `${many(pending, 'report was', 'reports were')} not delivered when the agent stopped reporting.`)
      : [h('b', {}, `${many(pending, 'report is', 'reports are')} not delivered yet. `), 'This page lacks them. The condition Delivered of the ThreeportWorkload says why.']),
    rejected > 0 && notice('rejected', h('b', {}, `${many(rejected, 'report was', 'reports were')} rejected by the control plane. `), `${rejected === 1 ? 'Its content is' : 'Their contents are'} missing here. The agent’s log has the reason.`),
    dropped > 0 && notice('dropped', h('b', {}, `${many(dropped, 'Event was', 'Events were')} dropped`), ' by the agent because its memory limit was reached. The timeline shows where.'));
}
