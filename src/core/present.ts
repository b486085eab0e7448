type IsSure<Value> = null extends Value ? false : undefined extends Value ? false : true;

/** The fields in `T`. Fields that can be `undefined` or `null` are optional. */
type Present<T> = {
  [Field in keyof T as IsSure<T[Field]> extends true ? Field : never]: T[Field];
} & {
  [Field in keyof T as IsSure<T[Field]> extends true ? never : Field]?: NonNullable<T[Field]>;
};

/** Copies an object without its `undefined` and `null` fields. */
export function present<T extends object>(fields: T): Present<T> {
  const copy: Record<string, unknown> = {};
  // Iterates over keys because this runs for every row in every list, and `Object.entries` would allocate for each
  // field.
  for (const name of Object.keys(fields)) {
    const value = (fields as Record<string, unknown>)[name];
    if (value === undefined || value === null) continue;
    // Assigning this key would change the object's prototype.
    if (name === "__proto__") Object.defineProperty(copy, name, { value, enumerable: true });
    else copy[name] = value;
  }
  return copy as Present<T>;
}
