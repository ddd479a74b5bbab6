/** Under which Host names an embedded gateway answers (promise TH9). PURE. */

/**
 * Whether an embedded gateway may be reached under this Host: a page of another domain that was made to resolve to this machine still
 * sends that domain's name. Loopback names, and the names in `allowed`.
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
