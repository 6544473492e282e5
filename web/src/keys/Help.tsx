import { useState } from 'react'
import { keepSingleKeys, shortcuts, singleKeys, written } from '@/keys/shortcuts'
import { text } from '@/text'
import { Dialog } from '@/ui/Dialog'
import { Keys } from '@/ui/Menu'

/** The keyboard shortcuts that are currently available. */
export function Help({ onClose }: { onClose: () => void }) {
  const [single, setSingle] = useState(singleKeys)
  const groups = new Map<string, Map<string, string[]>>()
  for (const { group, label, keys } of shortcuts()) {
    groups.set(group, (groups.get(group) ?? new Map()).set(label, [...(groups.get(group)?.get(label) ?? []), keys]))
  }
  return (
    <Dialog title={text.keys.title} onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard */}
      <div tabIndex={0} role="region" aria-label={text.keys.all} className="overflow-y-auto px-5 pb-5">
        {[...groups].map(([group, entries]) => (
          <section key={group}>
            <h3 className="mt-5 mb-1 text-xs font-semibold tracking-wide text-faint uppercase">{group}</h3>
            <dl className="divide-y divide-line">
              {[...entries].map(([label, keys]) => (
                <div key={label} className="flex items-center justify-between gap-4 py-2 text-sm">
                  <dt>{label}</dt>
                  <dd className="flex gap-2">
                    {keys.map((one) => (
                      <Keys key={one} keys={written(one)} />
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <label className="mt-5 flex min-h-9 cursor-pointer items-center gap-3 text-sm max-md:min-h-11">
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={single}
            onChange={(event) => {
              keepSingleKeys(event.target.checked)
              setSingle(event.target.checked)
            }}
          />
          {text.keys.single}
        </label>
      </div>
    </Dialog>
  )
}
