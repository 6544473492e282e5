import { Bell, BellOff, Smartphone } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { turnNotifications, useNotificationState, usePushDevice } from '@/app/notifications'
import {
  choicesOf,
  DEFAULT_CHOICES,
  type Device,
  type PushChoices,
  pushProblem,
  useDeviceActions,
  useDevices,
} from '@/data/push'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { age } from '@/ui/format'
import { Failed, Loading } from '@/ui/States'
import { notifyError } from '@/ui/toasts'

/** Settings for notifications while moot is open and while it is closed, and the user's devices. */
export function Notifications() {
  const { data, error, refetch } = useDevices()
  const own = usePushDevice()
  const id = useId()
  return (
    <section aria-labelledby={id} className="max-w-2xl">
      <h2 id={id} className="mb-2 text-sm font-semibold">
        {text.shell.notifications}
      </h2>
      <div className="divide-y divide-line rounded-xl border border-line">
        <Row title={text.push.open} about={text.push.openAbout}>
          <NotificationsButton />
        </Row>
        {error ? (
          <Failed error={error} retry={() => void refetch()} className="m-3" />
        ) : data ? (
          <ThisDevice device={data.data.find((device) => device.id === own)} />
        ) : (
          <div className="p-4">
            <Loading rows={1} />
          </div>
        )}
      </div>
      {!!data?.data.length && <Devices devices={data.data} own={own} />}
    </section>
  )
}

/** A button that turns the browser's notifications on or off, for the time while moot is open. */
export function NotificationsButton() {
  const state = useNotificationState()
  if (state === 'unsupported') return null
  if (state === 'blocked') return <p className="max-w-60 text-xs text-muted">{text.notifications.blocked}</p>
  const isOn = state === 'on'
  return (
    <Button onClick={() => void turnNotifications(!isOn).catch(notifyError)}>
      {isOn ? <BellOff size={15} aria-hidden /> : <Bell size={15} aria-hidden />}
      {isOn ? text.notifications.turnOff : text.notifications.turnOn}
    </Button>
  )
}

function Row({ title, about, children }: { title: string; about: string; children?: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center gap-x-6 gap-y-3 p-4">
      <div className="min-w-52 grow basis-72">
        <h3 className="text-sm font-medium">{title}</h3>
        <p className="mt-1 text-xs text-muted">{about}</p>
      </div>
      {children}
    </div>
  )
}

/** Turns notifications of this browser on and off, and changes what they contain. */
function ThisDevice({ device }: { device: Device | undefined }) {
  const { turnOn, turnOff } = useDeviceActions()
  const [changing, setChanging] = useState<PushChoices | null>(null)
  const problem = device ? '' : pushProblem()
  const failure = turnOn.error ?? turnOff.error
  const busy = turnOn.isPending || turnOff.isPending
  const choices = changing ?? (device ? choicesOf(device) : DEFAULT_CHOICES)
  const change = (changed: Partial<PushChoices>) => {
    const wanted = { ...choices, ...changed }
    setChanging(wanted)
    turnOn.mutate(wanted, { onSettled: () => setChanging(null) })
  }
  return (
    <div>
      <Row title={text.push.title} about={problem || text.push.about}>
        {!problem && (
          <Button disabled={busy} onClick={() => (device ? turnOff.mutate() : turnOn.mutate(choices))}>
            {device ? <BellOff size={15} aria-hidden /> : <Bell size={15} aria-hidden />}
            {device ? text.push.turnOff : text.push.turnOn}
          </Button>
        )}
      </Row>
      {device && (
        <div className="px-4 pb-3">
          <Choice label={text.push.ends} checked={choices.ends} disabled={busy} onChange={(ends) => change({ ends })} />
          <Choice
            label={text.push.details}
            about={text.push.detailsAbout}
            checked={choices.details}
            disabled={busy}
            onChange={(details) => change({ details })}
          />
        </div>
      )}
      {failure && <Failed error={failure} className="m-3 mt-0" />}
    </div>
  )
}

interface ChoiceProps {
  label: string
  about?: string
  checked: boolean
  disabled: boolean
  onChange: (checked: boolean) => void
}

function Choice({ label, about, checked, disabled, onChange }: ChoiceProps) {
  return (
    <label className="flex min-h-9 cursor-pointer items-start gap-2 py-1.5 text-sm max-md:min-h-11 max-md:py-2.5">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
        className="mt-0.5 size-4 shrink-0 accent-accent"
      />
      <span>
        {label}
        {about && <span className="block text-xs text-muted">{about}</span>}
      </span>
    </label>
  )
}

function Devices({ devices, own }: { devices: readonly Device[]; own: string }) {
  const { remove, test } = useDeviceActions()
  return (
    <>
      <h3 className="mt-5 mb-2 text-sm font-medium">{text.push.devices}</h3>
      <ul className="divide-y divide-line rounded-xl border border-line">
        {devices.map((device) => (
          <li key={device.id} className="flex flex-wrap items-center gap-x-6 gap-y-3 p-4">
            <div className="min-w-52 grow basis-60 text-sm">
              <p className="flex items-center gap-2 font-medium break-words">
                <Smartphone size={15} className="shrink-0 text-muted" aria-hidden />
                {device.name}
                {device.id === own && <span className="text-xs font-normal text-muted">{text.push.thisDevice}</span>}
              </p>
              <p className="mt-1 text-xs break-words text-muted">
                {text.push.state(device.service, device.sent_at === null ? text.common.never : age(device.sent_at))}
              </p>
              {device.error && (
                <p className="mt-1 text-xs break-words text-danger">
                  {text.push.failed(device.failures, device.error)}
                </p>
              )}
            </div>
            <div className="flex flex-wrap gap-2">
              <Button
                disabled={test.isPending}
                onClick={() => test.mutate(device)}
                aria-label={text.push.testNamed(device.name)}
              >
                {text.push.test}
              </Button>
              <Button
                look="danger"
                disabled={remove.isPending}
                onClick={() => remove.mutate(device)}
                aria-label={text.push.removeNamed(device.name)}
              >
                {text.push.remove}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {remove.error && <Failed error={remove.error} className="mt-3" />}
      {test.error && <Failed error={test.error} className="mt-3" />}
    </>
  )
}
