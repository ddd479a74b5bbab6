/** PURE. The token of an HTTP request. */

export function bearerToken(header: string | null): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,512})$/i.exec(header?.trim() ?? "")?.[1];
}
