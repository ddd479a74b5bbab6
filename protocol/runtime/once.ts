/** Gives what `work` gives. It runs with the first call; when it fails, the next call runs it again. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () => {
    if (done === undefined) {
      done = work();
      done.catch(() => {
        done = undefined;
      });
    }
    return done;
  };
}
