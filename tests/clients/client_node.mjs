// The official JavaScript client, used as its examples use it. Prints one JSON line of what it saw.
import assert from 'node:assert/strict'
import * as k8s from '@kubernetes/client-node'

const [namespace, group] = process.argv.slice(2)
const config = new k8s.KubeConfig()
config.loadFromFile(process.env.KUBECONFIG)
const core = config.makeApiClient(k8s.CoreV1Api)
const merge = k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch)
const map = (name, data) => ({ metadata: { name, namespace, labels: { mine: '1' } }, data })
const path = `/api/v1/namespaces/${namespace}/configmaps`

function soon(tell) {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('waited too long')), 15000).unref()
    tell(resolve, reject)
  })
}

async function lives() {
  const made = await core.createNamespacedConfigMap({ namespace, body: map('a', { k: 'v' }) })
  assert.deepEqual(made.data, { k: 'v' })
  assert(made.metadata.creationTimestamp instanceof Date)
  const patched = await core.patchNamespacedConfigMap({ name: 'a', namespace, body: { data: { new: '1' } } }, merge)
  assert.deepEqual(patched.data, { k: 'v', new: '1' })
  const replaced = await core.replaceNamespacedConfigMap({ name: 'a', namespace, body: { ...patched, data: { k: 'w' } } })
  assert.deepEqual(replaced.data, { k: 'w' })
  const listed = await core.listNamespacedConfigMap({ namespace, labelSelector: 'mine=1' })
  assert.deepEqual(listed.items.map((one) => one.metadata.name), ['a'])
  await core.deleteNamespacedConfigMap({ name: 'a', namespace })
  await assert.rejects(core.readNamespacedConfigMap({ name: 'a', namespace }), (error) => error.code === 404)
  return 'lives'
}

async function watches() {
  const start = await core.listNamespacedConfigMap({ namespace, labelSelector: 'mine=1' })
  await core.createNamespacedConfigMap({ namespace, body: map('b', { k: 'v' }) })
  await core.deleteNamespacedConfigMap({ name: 'b', namespace })
  const seen = []
  await soon((resolve, reject) => {
    const query = { labelSelector: 'mine=1', resourceVersion: start.metadata.resourceVersion }
    const note = (phase, object) => {
      seen.push([phase, object.metadata.name])
      if (phase === 'DELETED') resolve()
    }
    new k8s.Watch(config).watch(path, query, note, reject).then((stop) => setTimeout(() => stop.abort(), 14000).unref())
  })
  assert.deepEqual(seen, [['ADDED', 'b'], ['DELETED', 'b']])
  return 'watches'
}

async function informs() {
  const informer = k8s.makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace, labelSelector: 'mine=1' }), 'mine=1')
  const added = soon((resolve) => informer.on('add', resolve))
  const deleted = soon((resolve) => informer.on('delete', resolve))
  await informer.start()
  await core.createNamespacedConfigMap({ namespace, body: map('c') })
  assert.equal((await added).metadata.name, 'c')
  assert.equal(informer.get('c', namespace).metadata.name, 'c')
  await core.deleteNamespacedConfigMap({ name: 'c', namespace })
  await deleted
  await informer.stop()
  return 'informs'
}

async function finds() {
  const any = k8s.KubernetesObjectApi.makeApiClient(config)
  const sheep = { apiVersion: `${group}/v1`, kind: 'Sheep', metadata: { name: 'dolly', namespace }, spec: { wool: 1 } }
  await any.create(sheep)
  sheep.spec.wool = 2
  const patched = await any.patch(sheep, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch)
  assert.equal(patched.spec.wool, 2)
  assert.equal((await any.list(`${group}/v1`, 'Sheep', namespace)).items.length, 1)
  await any.delete(sheep)
  return 'finds'
}

const did = [await lives(), await watches(), await informs(), await finds()]
console.log(JSON.stringify(did))
process.exit(0)
