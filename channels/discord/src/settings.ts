/**
 * The configuration of an account, checked. Pure. The token comes from the configuration or from the Worker's secret; it is never told
 * to anybody, not even in an error.
 */

export interface Settings {
  readonly token: string;
  /** Without the version. */
  readonly api: string;
  /** Set when `api` is not Discord's own: files may come from there too. */
  readonly origin?: string;
}
export type SettingsOrWhy = { readonly ok: true; readonly settings: Settings } | { readonly ok: false; readonly why: string };

const DISCORD = "https://discord.com/api";
const NO_TOKEN =
  "There is no bot token. Make a bot at https://discord.com/developers/applications, copy its token (Bot, Reset Token), and put it in the configuration as `token`, or in the secret DISCORD_BOT_TOKEN.";

export function readSettings(
  config: Readonly<Record<string, unknown>>,
  secrets: { readonly token?: string; readonly api?: string },
): SettingsOrWhy {
  const given = config["token"] ?? config["botToken"] ?? secrets.token;
  if (given === undefined || given === "") return { ok: false, why: NO_TOKEN };
  const token = typeof given === "string" ? given.trim().replace(/^Bot\s+/i, "") : "";
  // Three parts of base64url with dots, as Discord makes them; what else might be pasted (a secret, an id) is told apart at once.
  if (!/^[\w-]{4,200}\.[\w-]{1,200}\.[\w-]{4,200}$/.test(token))
    return { ok: false, why: "The bot token is not one: it has three parts with dots between them. Copy it anew (Bot, Reset Token)." };
  const api = config["apiBase"] ?? secrets.api ?? DISCORD;
  if (typeof api !== "string" || !URL.canParse(api)) return { ok: false, why: "`apiBase` is no address." };
  const url = new URL(api);
  const loopback = url.protocol === "http:" && /^(?:127\.0\.0\.1|localhost|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" && !loopback) return { ok: false, why: "`apiBase` has to begin with https://." };
  const base = api.replace(/\/+$/, "");
  return { ok: true, settings: { token, api: base, ...(base === DISCORD ? {} : { origin: url.origin }) } };
}
/** The part of a token that names its bot; it is no secret. */
export const botOfToken = (token: string): string => token.split(".")[0] ?? "";

/** A session may be taken up only where Discord, or who stands for it, is. */
export function isGatewayAddress(address: unknown, origin: string | undefined): address is string {
  if (typeof address !== "string" || !URL.canParse(address)) return false;
  const url = new URL(address);
  if (origin !== undefined) return url.host === new URL(origin).host;
  return url.protocol === "wss:" && (url.hostname === "discord.gg" || url.hostname.endsWith(".discord.gg"));
}
