/** How secrets look in a text and how their fields are called, for every program that hides them. PURE. */

/** Stands where a secret was; the only mark for this, in every text, answer and log. Generated for Rust. */
export const HIDDEN = "[redacted]";

/** Names of fields whose values are secrets, compared without case, `_` and `-`, at the end of the name: `authToken`, `x-api-key`. */
const SECRET_NAME =
  /(authorization|cookie|password|passwd|secret|(?:api|access|private|public|secret|signing)keys?|bearer|private|credentials?|token|qrdataurl|pairingcode|^key|^code|^qr|^session)$/;

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name.toLowerCase().replace(/[_-]/g, ""));

/** Tokens of this and of every other gateway. */
export const GSV_TOKEN = /\bgsv_[a-z-]+_[A-Za-z0-9]+_[0-9a-fA-F]{16,}\b/g;

/** Tokens of GSV, keys of common providers, HTTP credentials and JSON web tokens. */
const SECRET_SHAPES: readonly RegExp[] = [
  GSV_TOKEN,
  /\b(?:sk|pk|rk|xox[abprs]|gh[pousr]|glpat|AIza|AKIA)[-_A-Za-z0-9]{14,}/g,
  /\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g,
];

/** The text without these values. Give longer values first, so that a secret that contains another is hidden whole. */
export function hideValues(text: string, values: readonly string[]): string {
  let clean = text;
  for (const value of values) if (clean.includes(value)) clean = clean.replaceAll(value, HIDDEN);
  return clean;
}

/** The text with all that looks like a secret hidden; `more` are the caller's own shapes, with the flag `g`. */
export function hideSecrets(text: string, more: readonly RegExp[] = []): string {
  let clean = text;
  for (const shape of [...SECRET_SHAPES, ...more]) clean = clean.replace(shape, HIDDEN);
  return clean;
}
