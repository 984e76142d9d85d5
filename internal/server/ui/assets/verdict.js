// What is wrong with a workload, plainly, and what has to be known to trust it.

import { h, icon } from './dom.js';
import { causes, known, sinceOf, typeName, unexplained } from './status.js';
import { count, long, many, said } from './text.js';
import { lasting, sinceStamp, stamp } from './time.js';

/** verdict is the top of a workload's page. */
export function verdict(workload) {
  const status = known(workload.status);
  const since = sinceOf(workload);
  return h('section', { class: 'verdict', 'data-status': status, 'aria-labelledby': 'name' },
    h('div', { class: 'verdict-name' },
      h('h1', { id: 'name' }, said(workload.name || `${typeName(workload.type)} ${workload.id}`)),
      workload.type === 'HelmWorkloadInstance' && h('span', { class: 'tag' }, 'Helm')),
    h('div', { class: 'verdict-status' }, icon(status, 'large'), h('p', { class: 'status-word' }, status, since && h('span', { class: 'for' }, ' for ', sinceStamp(since)))),
    cause(workload),
    facts(workload),
    notices(workload));
}

function cause(workload) {
  if (workload.silent) return silence(workload);
  const [what] = causes(workload);
  if (!what) {
    const healthy = known(workload.status) === 'Healthy';
    return h('div', { class: 'cause' }, h('p', { class: 'cause-what' }, healthy ? 'Everything runs as declared.' : said(unexplained(workload) || 'No cause was told.')));
  }
  return h('div', { class: 'cause' }, h('p', { class: 'cause-what' }, long(what, 400)), because(workload));
}

// Nobody knows how it is. What it was is said, as what it was.
function silence(workload) {
  const { said: word, saidAt, heardAt } = workload;
  const [what] = causes(workload);
  return h('div', { class: 'cause' },
    h('p', { class: 'cause-what' }, word ? [`Last said ${known(word)}`, saidAt && [' at ', stamp(saidAt)]] : 'It never said how it is',
      heardAt ? [', nothing heard since ', stamp(heardAt)] : ', and nothing is heard'),
    h('p', { class: 'cause-note' }, 'Its agent does not answer: how the workload is now, nobody knows.'),
    what && h('p', { class: 'cause-note' }, 'It said then: ', long(what, 400)),
    because(workload));
}

const ENDS = 6; // of a long chain so many links are shown of its beginning, and of its end, which is what is at fault

function because(workload) {
  const [, ...links] = causes(workload);
  if (!links.length) return null;
  const item = (why) => h('li', {}, long(why, 400));
  const between = links.slice(ENDS, -ENDS);
  if (between.length < 2) return h('ol', { class: 'cause-why', 'aria-label': 'Because' }, links.map(item));
  const rest = h('li', { class: 'between' }, h('details', {}, h('summary', {}, `${count(between.length)} more between`), h('ol', {}, between.map(item))));
  return h('ol', { class: 'cause-why', 'aria-label': 'Because' }, links.slice(0, ENDS).map(item), rest, links.slice(-ENDS).map(item));
}

function facts(workload) {
  const fact = (name, ...value) => h('div', { 'data-key': name }, h('dt', {}, name), h('dd', {}, ...value));
  return h('dl', { class: 'facts' },
    workload.silent && fact('Unknown since', workload.heardAt ? stamp(workload.heardAt) : 'not known'),
    (!workload.silent || workload.said) && fact(workload.silent ? `Said ${known(workload.said)} since` : 'Since', workload.since ? stamp(workload.since) : 'not known'),
    workload.reason && fact(workload.silent ? 'Reason then' : 'Reason', said(workload.reason)),
    fact('Cluster', workload.clusterName || workload.clusterUID ? said(workload.clusterName || workload.clusterUID) : 'not known'),
    fact('Delay of delivery', delay(workload)),
    workload.heardAt && fact('Agent heard', sinceStamp(workload.heardAt, ' ago')),
    fact(typeName(workload.type), h('span', { class: 'mono' }, workload.id)));
}

function delay(workload) {
  if (!workload.heardAt) return 'its agent does not say';
  if (workload.silent) return 'silent';
  return workload.delaySeconds < 1 ? 'none' : lasting(workload.delaySeconds);
}

// What is missing is said, and not left to be guessed from what is there.
function notices({ pending = 0, rejected = 0, dropped = 0 }) {
  const notice = (name, ...text) => h('li', { class: `notice ${name}` }, icon('lost'), h('span', {}, ...text));
  if (!pending && !rejected && !dropped) return null;
  return h('ul', { class: 'notices', 'aria-label': 'Delivery' },
    pending > 0 && notice('pending', h('b', {}, `${many(pending, 'report is', 'reports are')} on the way. `), 'What you see may be a little older than what is.'),
    rejected > 0 && notice('rejected', h('b', {}, `${many(rejected, 'report was', 'reports were')} refused for good`), ' (dead letters). What they told is missing here; the agent’s log says why.'),
    dropped > 0 && notice('dropped', h('b', {}, `${count(dropped)} ${dropped === 1 ? 'Event was' : 'Events were'} lost`), ' because the agent could keep no more. The timeline shows where.'));
}
