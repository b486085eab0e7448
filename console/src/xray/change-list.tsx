import buttons from "../ui/button.module.css";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import { oneLine } from "../ui/plain-text.ts";
import styles from "./change-list.module.css";
import type { Context } from "./xray-page.tsx";

interface ChangeListProps {
  readonly changes: Context["changes"];
  readonly onShow: (messageIndex: number) => void;
}

/** Every change between the log and the request, with the text before and after it. */
export function ChangeList({ changes, onShow }: ChangeListProps) {
  return (
    <section aria-label="Changes">
      <h2 className={styles.head}>
        {changes.length === 0
          ? "No changes"
          : changes.length === 1
            ? "1 change"
            : `${changes.length} changes`}
      </h2>
      {changes.length === 0 && <p className={styles.none}>The model sees the log as it is.</p>}
      <ol className={styles.list}>
        {changes.map(({ step, kind, note, messageIndex, before, after }, index) => (
          <li key={index}>
            <Foldable title={oneLine(note, 200)}>
              <p className={styles.step}>
                {step} · {kind}
                {messageIndex !== undefined && (
                  <button
                    type="button"
                    className={buttons.button}
                    data-look="quiet"
                    onClick={() => onShow(messageIndex)}
                  >
                    Show the message
                  </button>
                )}
              </p>
              {before !== undefined && (
                <div data-side="before">
                  <CodeBlock text={before} />
                </div>
              )}
              {after !== undefined && (
                <div data-side="after">
                  <CodeBlock text={after} />
                </div>
              )}
            </Foldable>
          </li>
        ))}
      </ol>
    </section>
  );
}
