import { Pause, Play, Square } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Toggle } from '@/conversation/panel/Toggle'
import { Pace } from '@/conversation/replay/pace'
import { type Played, play } from '@/conversation/replay/play'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

const SPEEDS = (['1', '4', '16'] as const).map((value) => ({ value, label: `${value}×` }))

interface Props {
  conversation: string
  show: (played: Played) => void
  onClose: () => void
}

/** The controls of a replay, in place of the composer. */
export default function Replay({ conversation, show, onClose }: Props) {
  const pace = useRef<Pace | null>(null)
  const first = useRef<HTMLButtonElement>(null)
  const [paused, setPaused] = useState(false)
  const [speed, setSpeed] = useState<(typeof SPEEDS)[number]['value']>('1')
  const [ended, setEnded] = useState(false)
  useEffect(() => {
    const clock = new Pace()
    pace.current = clock
    first.current?.focus()
    play(conversation, clock, show).then(
      () => setEnded(true),
      (error) => {
        if (clock.stopped) return
        setEnded(true)
        notifyError(error)
      },
    )
    return () => clock.stop()
  }, [conversation, show])
  return (
    <div className="mx-auto w-full max-w-3xl px-4 pb-5 sm:px-6">
      <section
        aria-label={text.replay.title}
        className="flex flex-wrap items-center gap-2 rounded-2xl border border-line-strong bg-raised p-2 shadow-raised"
      >
        <Button
          ref={first}
          look="quiet"
          disabled={ended}
          onClick={() => {
            pace.current?.pause(!paused)
            setPaused(!paused)
          }}
        >
          {paused ? <Play size={15} aria-hidden /> : <Pause size={15} aria-hidden />}
          {paused ? text.replay.resume : text.replay.pause}
        </Button>
        <Toggle
          label={text.replay.speed}
          choices={SPEEDS}
          chosen={speed}
          choose={(chosen) => {
            pace.current?.speed(Number(chosen))
            setSpeed(chosen)
          }}
        />
        <p role="status" className="min-w-0 grow text-sm text-muted">
          {ended ? text.replay.ended : paused ? text.replay.paused : text.replay.playing}
        </p>
        <Button onClick={onClose}>
          <Square size={13} aria-hidden />
          {text.replay.stop}
        </Button>
      </section>
    </div>
  )
}
