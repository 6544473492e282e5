import { useId, useSyncExternalStore } from 'react'
import { chooseLanguage, chosenLanguage, LANGUAGES } from '@/language'
import { Area } from '@/settings/Area'
import { Notifications } from '@/settings/Notifications'
import { text } from '@/text'
import { choose, chosen, subscribe, THEMES } from '@/theme/choice'
import { Button } from '@/ui/Button'
import { notify } from '@/ui/toasts'

/** The language, the theme and the notifications of this browser. */
export default function Appearance() {
  const theme = useSyncExternalStore(subscribe, chosen)
  return (
    <Area title={text.settings.appearance} about={text.appearance.about}>
      <div className="space-y-8">
        <Choice
          label={text.language.title}
          about={text.language.about}
          values={['auto', ...LANGUAGES] as const}
          names={text.language.names}
          chosen={chosenLanguage()}
          choose={(language) => chooseLanguage(language) || notify(text.language.notStored)}
        />
        <Choice label={text.theme.title} values={THEMES} names={text.theme.names} chosen={theme} choose={choose} />
        <Notifications />
      </div>
    </Area>
  )
}

interface Props<Value extends string> {
  label: string
  about?: string
  values: readonly Value[]
  names: Readonly<Record<Value, string>>
  chosen: Value
  choose: (value: Value) => void
}

/** A button for each value. Unlike in a list, the arrow keys don't choose values on the way, which could reload the page. */
function Choice<Value extends string>({ label, about, values, names, chosen, choose }: Props<Value>) {
  const id = useId()
  return (
    <section role="group" aria-labelledby={id} aria-describedby={about && `${id}-about`}>
      <h2 id={id} className="mb-2 text-sm font-semibold">
        {label}
      </h2>
      <div className="flex flex-wrap gap-2">
        {values.map((value) => (
          <Button
            key={value}
            aria-pressed={value === chosen}
            className="aria-pressed:border-accent aria-pressed:bg-accent-soft"
            onClick={() => choose(value)}
          >
            {names[value]}
          </Button>
        ))}
      </div>
      {about && (
        <p id={`${id}-about`} className="mt-2 max-w-prose text-xs text-muted">
          {about}
        </p>
      )}
    </section>
  )
}
