// Questions to the API. Whatever goes wrong becomes a Problem of one of a few kinds, each with a state of its own.

import { serverSaid } from './time.js';

/** Problem is why there is no answer: signedOut, forbidden, missing, busy, unreachable or broken. */
export class Problem extends Error {
  constructor(kind, detail, { status = 0, retryAfter = 0 } = {}) {
    super(detail);
    this.kind = kind;
    this.status = status;
    this.retryAfter = retryAfter; // seconds
  }
}

const KINDS = new Map([[401, 'signedOut'], [403, 'forbidden'], [404, 'missing'], [429, 'busy'], [503, 'busy']]);

/** problemOf reads an answer that is none. */
export async function problemOf(response) {
  let detail = response.statusText || `The server answered ${response.status}.`;
  try {
    const body = await response.json(); // application/problem+json, RFC 9457
    detail = body.detail || body.title || detail;
  } catch { /* it is not: the status has to do */ }
  return new Problem(KINDS.get(response.status) ?? 'broken', detail, {
    status: response.status, retryAfter: Number(response.headers.get('Retry-After')) || 0,
  });
}

/** ask sends a GET, and returns the answer if it is one. An abort is thrown as it is. */
export async function ask(path, { params, signal, headers } = {}) {
  const query = new URLSearchParams(Object.entries(params ?? {}).filter(([, value]) => value !== '' && value !== undefined));
  const url = query.size ? `${path}?${query}` : path;
  let response;
  try {
    response = await fetch(url, { signal, headers, cache: 'no-store', redirect: 'error' });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem('unreachable', 'The control plane cannot be reached.');
  }
  serverSaid(response.headers.get('Date'));
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** get asks for JSON. */
export async function get(path, params, { signal, reviver } = {}) {
  const response = await ask(path, { params, signal });
  try {
    return JSON.parse(await response.text(), reviver);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem('broken', 'The answer was cut off, or is no JSON.');
  }
}

/** RawNumber is a number that a browser cannot hold, as it was written. */
export class RawNumber {
  constructor(source) { this.source = source; }

  toString() { return this.source; }
}

/** exact is a reviver that keeps the digits of numbers beyond 2^53, in browsers that tell them. */
export function exact(key, value, context) {
  return typeof value === 'number' && context?.source && String(value) !== context.source && !Number.isSafeInteger(value)
    ? new RawNumber(context.source) : value;
}
