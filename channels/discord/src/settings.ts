/**
 * PURE. Validates an account's configuration. The token comes from the configuration or from the Worker's secret and never appears in
 * errors.
 */

export interface Settings {
  readonly token: string;
  /** Without the version. */
  readonly api: string;
  /** Set when `api` is not Discord's own: files may come from there, too. */
  readonly origin?: string;
}
export type SettingsOrWhy = { readonly ok: true; readonly settings: Settings } | { readonly ok: false; readonly why: string };

const DISCORD = "https://discord.com/api";
const NO_TOKEN =
  "There is no bot token. Make a bot at https://discord.com/developers/applications, copy its token (Bot, Reset Token), and run `gsv channel discord start`, which asks for it. On Cloudflare the secret DISCORD_BOT_TOKEN works, too.";

export function readSettings(
  config: Readonly<Record<string, unknown>>,
  secrets: { readonly token?: string; readonly api?: string },
): SettingsOrWhy {
  const given = config["token"] ?? config["botToken"] ?? secrets.token;
  if (given === undefined || given === "") return { ok: false, why: NO_TOKEN };
  const token = typeof given === "string" ? given.trim().replace(/^Bot\s+/i, "") : "";
  // Three base64url parts with dots, as Discord makes them; a pasted secret or id fails at once.
  if (!/^[\w-]{4,200}\.[\w-]{1,200}\.[\w-]{4,200}$/.test(token))
    return {
      ok: false,
      why: "The bot token is not valid: a token has three parts with dots between them. Copy it again (Bot, Reset Token).",
    };
  const api = config["apiBase"] ?? secrets.api ?? DISCORD;
  if (typeof api !== "string" || !URL.canParse(api)) return { ok: false, why: "`apiBase` is not a URL." };
  const url = new URL(api);
  const loopback = url.protocol === "http:" && /^(?:127\.0\.0\.1|localhost|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" && !loopback) return { ok: false, why: "`apiBase` must begin with https://." };
  const base = api.replace(/\/+$/, "");
  return { ok: true, settings: { token, api: base, ...(base === DISCORD ? {} : { origin: url.origin }) } };
}
/** The part of a token that identifies its bot; not secret. */
export const botOfToken = (token: string): string => token.split(".")[0] ?? "";

/** A session may be resumed only at Discord's hosts or the configured ones. */
export function isGatewayAddress(address: unknown, origin: string | undefined): address is string {
  if (typeof address !== "string" || !URL.canParse(address)) return false;
  const url = new URL(address);
  if (origin !== undefined) return url.host === new URL(origin).host;
  return url.protocol === "wss:" && (url.hostname === "discord.gg" || url.hostname.endsWith(".discord.gg"));
}
