// Requests to the API. Each failure becomes a Problem of one of a few kinds, which each have a view of their own.

import { syncClock } from './time.js';

/** Problem is the failure of a request: signedOut, forbidden, missing, busy, unreachable or broken. */
export class Problem extends Error {
  constructor(kind, detail, { status = 0, retryAfter = 0 } = {}) {
    super(detail);
    this.kind = kind;
    this.status = status;
    this.retryAfter = retryAfter; // seconds
  }
}

const KINDS = new Map([[401, 'signedOut'], [403, 'forbidden'], [404, 'missing'], [429, 'busy'], [503, 'busy']]);

/** problemOf makes a Problem of an error response. */
export async function problemOf(response) {
  let detail = response.statusText || `The server answered ${response.status}.`;
  try {
    const body = await response.json(); // application/problem+json, RFC 9457
    detail = body.detail || body.title || detail;
  } catch { /* the body is no problem: the status text remains */ }
  return new Problem(KINDS.get(response.status) ?? 'broken', detail, {
    status: response.status, retryAfter: Number(response.headers.get('Retry-After')) || 0,
  });
}

/** request sends a GET and returns a successful response. It throws a Problem, or the error of an abort. */
export async function request(path, { params, signal, headers } = {}) {
  const query = new URLSearchParams(Object.entries(params ?? {}).filter(([, value]) => value !== '' && value !== undefined));
  const url = query.size ? `${path}?${query}` : path;
  let response;
  try {
    response = await fetch(url, { signal, headers, cache: 'no-store', redirect: 'error' });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem('unreachable', 'The control plane cannot be reached.');
  }
  syncClock(response.headers.get('Date'));
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** get requests JSON. */
export async function get(path, params, { signal, reviver } = {}) {
  const response = await request(path, { params, signal });
  try {
    return JSON.parse(await response.text(), reviver);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem('broken', error instanceof RangeError ? 'The response has too many levels of nesting.' : 'The response is incomplete or not JSON.');
  }
}

/** RawNumber is a number beyond the precision of JavaScript, as text. */
export class RawNumber {
  constructor(source) { this.source = source; }

  toString() { return this.source; }
}

/** exact is a reviver that keeps the digits of numbers beyond 2^53, in browsers that pass the source text. */
export function exact(key, value, context) {
  return typeof value === 'number' && context?.source && String(value) !== context.source && !Number.isSafeInteger(value)
    ? new RawNumber(context.source) : value;
}
