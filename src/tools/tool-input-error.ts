/** An argument that a tool cannot take. Every surface renders it as a refusal with this code. */
export class ToolInputError extends Error {
  override readonly name = "ToolInputError";
  readonly code = "invalid_arguments";
  /** Where it is: `attachments.2.name`; empty: the arguments as a whole. */
  readonly path: string;

  constructor(message: string, path: string) {
    super(message);
    this.path = path;
  }
}
