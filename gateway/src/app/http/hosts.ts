/** Checks the Host header of a request to an embedded gateway (threat TH9). PURE. */

/** The address of a request. Undefined: its Host header makes no valid address. */
export const addressOf = ({ url }: { readonly url: string }): URL | undefined => (URL.canParse(url) ? new URL(url) : undefined);

/**
 * Allows loopback names and the names in `allowed`. A web page whose domain was made to resolve to this machine (DNS rebinding) still
 * sends its own domain, and is refused.
 */
export function hostAllowed(host: string | null, allowed: readonly string[]): boolean {
  if (host === null || host === "") return false;
  const name = hostName(host);
  return name !== undefined && (isLoopback(name) || allowed.some((item) => item === name || item === host.toLowerCase()));
}

function hostName(host: string): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:@/?#\s]+)(?::\d{1,5})?$/i.exec(host.trim());
  return match?.[1]?.toLowerCase().replace(/\.$/, "");
}

const isLoopback = (name: string): boolean =>
  name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(name);
