/**
 * Throws if the Node version is too old, before the rest of the package is evaluated. Each entry point imports this
 * file first so that the user sees one sentence instead of a syntax or module error. Browsers, which load the client,
 * have no Node version and pass the check.
 */

const needed = 24;
const running = (globalThis as Partial<typeof globalThis>).process?.versions?.node;

if (running !== undefined && Number(running.split(".")[0]) < needed) {
  const error = new Error(
    `skein requires Node ${needed} or newer, but this is Node ${running}. Install a newer version from https://nodejs.org.`,
  );
  // Without a stack, Node prints only the message.
  error.stack = `Error: ${error.message}`;
  throw error;
}

export {};
