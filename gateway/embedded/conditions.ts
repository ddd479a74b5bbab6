/** Preconditions and ranges of R2 requests. PURE: no storage, no clock. */

export interface ETagTest {
  readonly type: "strong" | "weak" | "wildcard";
  readonly value?: string;
}
export interface Conditions {
  readonly etagMatches?: readonly ETagTest[];
  readonly etagDoesNotMatch?: readonly ETagTest[];
  /** Epoch ms. */
  readonly uploadedBefore?: number;
  readonly uploadedAfter?: number;
  readonly secondsGranularity?: boolean;
}
export interface Present {
  readonly etag: string;
  readonly uploaded: number;
}

const matches = (tests: readonly ETagTest[], etag: string, weakCounts: boolean): boolean =>
  tests.some((test) => test.type === "wildcard" || (test.value === etag && (test.type === "strong" || weakCounts)));

/**
 * RFC 9110 section 13.2.2 as R2 applies it: an etag condition that holds overrides the date condition of its pair.
 * An absent object fails what asks for one (`etagMatches`, `uploadedAfter`) and passes the rest.
 */
export function conditionsHold(conditions: Conditions | undefined, object: Present | undefined): boolean {
  if (conditions === undefined) return true;
  const { etagMatches, etagDoesNotMatch, uploadedBefore, uploadedAfter } = conditions;
  if (object === undefined) return etagMatches === undefined && uploadedAfter === undefined;

  const precise = (ms: number): number => (conditions.secondsGranularity === true ? Math.floor(ms / 1000) : ms);
  const uploaded = precise(object.uploaded);
  const matched = etagMatches === undefined || matches(etagMatches, object.etag, false);
  const unmatched = etagDoesNotMatch === undefined || !matches(etagDoesNotMatch, object.etag, true);
  const after = uploadedAfter === undefined || precise(uploadedAfter) < uploaded || (etagDoesNotMatch !== undefined && unmatched);
  const before = uploadedBefore === undefined || uploaded < precise(uploadedBefore) || (etagMatches !== undefined && matched);
  return matched && unmatched && after && before;
}

export interface RangeRequest {
  readonly offset?: number;
  readonly length?: number;
  readonly suffix?: number;
}
export interface Range {
  readonly offset: number;
  readonly length: number;
}

/** What to read of `size` bytes: undefined is all of it, null can't be satisfied. */
export function resolveRange(request: RangeRequest, size: number): Range | null {
  if (request.suffix !== undefined) {
    if (request.suffix <= 0) return null;
    const length = Math.min(request.suffix, size);
    return { offset: size - length, length };
  }
  const offset = request.offset ?? 0;
  const length = request.length ?? size - offset;
  if (offset > size || length <= 0) return null;
  return { offset, length: Math.min(length, size - offset) };
}

/** A `Range` header with one range in bytes. Any other header asks for the whole object (undefined). */
export function parseRangeHeader(header: string): RangeRequest | undefined {
  const match = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header);
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") return last === "" ? undefined : { suffix: Number(last) };
  if (last === "") return { offset: Number(first) };
  return Number(last) < Number(first) ? undefined : { offset: Number(first), length: Number(last) - Number(first) + 1 };
}
