/** Ids that rise with time: ULIDs. PURE. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_CHARS = 10;
/** Random bytes of an id, five bits of each. */
export const ULID_BYTES = 16;

export function ulid(now: number, random: Uint8Array): string {
  let time = "";
  for (let rest = Math.max(0, Math.trunc(now)), index = 0; index < TIME_CHARS; index++) {
    time = (ALPHABET[rest % 32] ?? "") + time;
    rest = Math.floor(rest / 32);
  }
  return time + Array.from(random.subarray(0, ULID_BYTES), (byte) => ALPHABET[byte & 31]).join("");
}
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
/** As people and models write it. Undefined: no id. */
export function readUlid(given: string): string | undefined {
  const id = given.trim().toUpperCase();
  return ULID.test(id) ? id : undefined;
}
