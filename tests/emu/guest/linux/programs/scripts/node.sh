# Child processes, sockets, worker threads, files, signals.
cat > n.js <<'E'
const cp=require('child_process'), fs=require('fs'), net=require('net'), {Worker,isMainThread,parentPort}=require('worker_threads'), zlib=require('zlib'), crypto=require('crypto'), os=require('os');
console.log(cp.execSync('echo sync').toString().trim());
const c=cp.spawn('cat'); c.stdout.on('data',d=>console.log('cat '+d)); c.on('close',code=>console.log('closed',code)); c.stdin.end('data');
c.on('close',()=>{ const s=net.createServer(x=>{x.end('from server')}); s.listen('./sock',()=>{ net.connect('./sock').on('data',d=>{console.log(''+d)}).on('close',()=>{s.close(); work();}); }); });
function work(){ const w=new Worker('const {parentPort}=require("worker_threads"); parentPort.postMessage([1,2,3].map(x=>x*x))',{eval:true}); w.on('message',m=>console.log(m)); w.on('exit',()=>files()); }
async function files(){ await fs.promises.writeFile('f','text'); console.log(await fs.promises.readFile('f','utf8'), (await fs.promises.stat('f')).size); console.log(zlib.inflateSync(zlib.deflateSync('abc'.repeat(100))).length, crypto.pbkdf2Sync('a','b',10,8,'sha1').toString('hex')); let s=0; for(let i=0;i<3e5;i++) s+=i%7; console.log(s, 0.1+0.2, [..."héllo"].length, new Intl.NumberFormat('en').format(1234567.891)); process.on('SIGUSR2',()=>{console.log('sig'); process.exit(3)}); process.kill(process.pid,'SIGUSR2'); setTimeout(()=>{},5000) }
E
node n.js; echo rc $?
