/** Replaces `pino` with a silent logger, because Baileys would log messages and keys. */
export interface Silent {
  level: string;
  child(): Silent;
  trace(): void;
  debug(): void;
  info(): void;
  warn(): void;
  error(): void;
  fatal(): void;
}
export const silent: Silent = {
  level: "silent",
  child: () => silent,
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  fatal() {},
};
export default (): Silent => silent;
