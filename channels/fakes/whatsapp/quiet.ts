/** libsignal prints sessions with their keys to the console; this silences it for the fake. */
const CHATTER =
  /^(?:Closing (?:open )?session|Opening session|Removing old closed session|Session already|Decrypted message with closed|Migrating session)/;

for (const name of ["info", "warn"] as const) {
  const print = console[name].bind(console);
  console[name] = (...args: unknown[]) => {
    if (typeof args[0] !== "string" || !CHATTER.test(args[0])) print(...args);
  };
}
